"""Where a pass over the answers runs. Every engine has the same shape and gives the same numbers."""
