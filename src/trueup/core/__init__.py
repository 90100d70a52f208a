"""What everything else is built on: arrays, parameter checks, progress bars, random draws."""
