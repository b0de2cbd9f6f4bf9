//! The lease's token: 128 random bits, made by the caller for each claim.

use std::fmt;
use std::str::FromStr;

/// Names one claim. Whoever settles or extends must show it.
///
/// Never a counter: after a power cut a counter can be handed out twice, and
/// the first holder could then settle the second one's tasks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u128);

impl Token {
    /// A fresh token from the operating system's random source.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn random() -> Result<Self, crate::StoreError> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes)
            .map_err(|e| crate::StoreError::unavailable(format!("no randomness: {e}")))?;
        Ok(Token(u128::from_be_bytes(bytes)))
    }

    /// The token with these bits, for stores that read it back.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Token(u128::from_be_bytes(bytes))
    }

    /// The token's bits.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Whoever holds a token can settle with it, so logs get only its beginning.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:08x}…)", self.0 >> 96)
    }
}

/// The text is not a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token is 32 hexadecimal digits")]
pub struct TokenError;

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 32 {
            return Err(TokenError);
        }
        u128::from_str_radix(text, 16).map(Token).map_err(|_| TokenError)
    }
}
