"""The sections of a report, one module each, in the order in which a reader meets them."""
