"""Systems compared by a panel of judges: means, differences, ranks, and what to add."""
