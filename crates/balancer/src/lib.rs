//! The HTTP data plane: listeners, HTTP/1.1, policies, queue and counters.
