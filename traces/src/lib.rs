//! Captures in and out, and the golden cases.
