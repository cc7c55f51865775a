"""The `rllib` command: a module per subcommand, and the code they share."""
