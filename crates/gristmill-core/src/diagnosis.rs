//! What a look at a store finds, in words, with what to do about it.

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// A short word for programs: stable, unlike the sentences.
    pub code: &'static str,
    /// Work is lost, stands still or is about to, unless somebody acts.
    pub grave: bool,
    /// What was found, in one sentence.
    pub found: String,
    /// What to do about it, in one sentence.
    pub remedy: String,
}

impl Diagnosis {
    /// Something that has to be dealt with.
    #[must_use]
    pub fn grave(code: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Diagnosis { code, grave: true, found: found.into(), remedy: remedy.into() }
    }

    /// Something worth knowing.
    #[must_use]
    pub fn note(code: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Diagnosis { code, grave: false, found: found.into(), remedy: remedy.into() }
    }
}
