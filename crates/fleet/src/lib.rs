//! Instances of an app: drivers, readiness, restart, scale and rolling replacement.
