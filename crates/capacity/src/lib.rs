//! The science: laws, a queueing model, findings and the recommendation. No I/O.
