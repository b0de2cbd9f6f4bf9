//! One error type for the whole application: a sentence for its user.

/// What went wrong. Nobody branches on it; it is shown, or kept with the task.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// The application's result.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
