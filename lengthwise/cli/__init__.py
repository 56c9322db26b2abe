"""The command line: parsing, flag names, orchestration."""
