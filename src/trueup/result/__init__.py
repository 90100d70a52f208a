"""The result of an estimate: tables, saving and loading."""
