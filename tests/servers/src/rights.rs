//! The least rights of users, as docs/operations.md has them.

const PAGE: &str = include_str!("../../../docs/operations.md");

/// What a store's user needs at a server that holds data. `{app` stands for the key prefix.
pub fn of_data() -> Vec<&'static str> {
    block(0)
}

/// What the same user needs beyond that at the nodes of a Cluster.
pub fn of_cluster() -> Vec<&'static str> {
    block(1)
}

/// What a user needs at the sentinels.
pub fn of_sentinels() -> Vec<&'static str> {
    block(2)
}

/// The rules of one of the page's blocks.
fn block(place: usize) -> Vec<&'static str> {
    let inside = PAGE.split("```acl").nth(place + 1).and_then(|rest| rest.split("```").next());
    let words = inside.unwrap_or_else(|| panic!("docs/operations.md has no block of ACL rules of number {place}"));
    words.split_whitespace().filter(|word| *word == "resetchannels" || word.starts_with(['~', '&', '+'])).collect()
}
