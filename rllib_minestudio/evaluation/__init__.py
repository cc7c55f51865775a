"""What a trained agent is worth: episodes played, videos recorded, learning curves drawn."""
