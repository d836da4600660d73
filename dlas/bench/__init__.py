"""One step on one machine: where it runs, its limits, how it is timed, and where its artifact is kept."""
