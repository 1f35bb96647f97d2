"""The parts of ci/mutate."""
