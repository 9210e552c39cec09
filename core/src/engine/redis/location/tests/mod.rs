//! Tests against real servers.
//!
//! The sentences of redis.md marked † that are this room's, and the test that fails without each (seen with the rule removed,
//! but for those in brackets):
//!
//! - Expiry in 8 bytes, saturating, written with `%.0f`: `basics::a_write_of_everything_that_is_allowed`,
//!   `reaping::native_expiry_is_the_net_behind_the_longest_snapshot`.
//! - A logically expired record is saved too: `scans::a_logically_expired_record_is_saved_when_it_is_replaced_or_deleted`.
//! - A finished scan stays a link: `scans::a_finished_scan_stays_a_link_of_older_ones`.
//! - Overdue snapshots leave first: `clock::whatever_changes_something_first_takes_overdue_snapshots_away`.
//! - A clock before the newest start drops all: `clock::a_clock_before_the_newest_start_drops_all_snapshots`.
//! - An expired record goes as soon as no live snapshot started before its expiry, and not before:
//!   `reaping::the_second_step_looks_again`, `reaping::a_finished_scan_holds_back_what_its_last_page_may_be_asked_for_again`,
//!   `reaping::a_snapshot_from_before_the_expiry_holds_a_record_back_until_it_is_over`.
//! - [Nothing but single commands through a user's client: `server::everything_works_through_somebody_elses_client`.]
//! - [No group joins a call that touches a key of another:
//!   `queue::tests::what_another_group_writes_or_reads_does_not_join_its_call`, `writes::groups_that_read_what_others_write_are_judged_apart`.]
//! - [A page that misses its snapshot in any step is expired, a first page starts anew:
//!   `scans::an_overdue_or_lost_snapshot_is_expired_in_every_step`, `scans::a_first_page_is_never_expired`.]

mod basics;
mod clock;
mod memory;
mod model;
mod reaping;
mod rig;
mod scans;
mod server;
mod stored;
mod tap;
mod writes;
