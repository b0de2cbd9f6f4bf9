//! Makes `queues.rs` of the contract before each build that needs it.

fn main() -> Result<(), gristmill_contract::BuildError> {
    gristmill_contract::build("queues.yaml")
}
