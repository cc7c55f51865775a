"""Shows summaries: as tables on a terminal, and as one HTML page with plots and videos."""
