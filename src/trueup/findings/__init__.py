"""What stands out: workers, correlated workers, agreement, questions that need answers, unusual input."""
