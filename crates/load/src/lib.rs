//! The load generator: workloads, engine, histograms and the verdict of a run.
