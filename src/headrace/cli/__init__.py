"""The command line, thin over the API."""
