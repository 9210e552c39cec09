//! Tests against real servers.
//!
//! The sentences of redis.md marked † about the two stores, and the tests that fail without each: all were seen failing with the
//! rule removed. (`redis` is the folder above, `blob` its neighbour.)
//!
//! - Nothing but single commands through a user's client: `redis::tests::hosted::no_operation_consumes_a_watch_of_the_users`.
//! - Expiry in 8 bytes, saturating, written with `%.0f`: `basics::a_write_of_everything_that_is_allowed`,
//!   `reaping::native_expiry_is_the_net_behind_the_longest_snapshot`.
//! - No group joins a call that touches a key of another: `writes::groups_that_read_what_others_write_are_judged_apart`,
//!   `writes::racers_for_one_key_have_one_winner`; each direction by itself, which no caller could tell from another order:
//!   `queue::tests::what_another_group_writes_or_reads_does_not_join_its_call`.
//! - WAIT behind a write on its own connection; a look that finds our mark, or a repeated call that finds its work done, writes
//!   and waits: `acked::a_commit_that_a_look_finds_counts_once_replicas_have_it`, `acked::a_look_on_a_fresh_connection_does_not_lie`,
//!   `acked::one_wait_for_each_call_on_a_line_of_writes_only`, `redis::tests::acked`,
//!   `blob::tests::acks::what_finds_its_own_work_writes_something_and_waits_for_that`.
//! - A logically expired record is saved too: `scans::a_logically_expired_record_is_saved_when_it_is_replaced_or_deleted`.
//! - A page that misses its snapshot in any step, or finds it overdue, is expired, a first page starts anew:
//!   `guards::an_overdue_or_lost_snapshot_is_expired_in_every_step`, `guards::a_first_page_is_never_expired`,
//!   `guards::a_page_behind_which_nothing_is_left_is_expired_with_its_snapshot`.
//! - A finished scan stays a link: `scans::a_finished_scan_stays_a_link_of_older_ones`.
//! - Overdue snapshots leave first: `clock::whatever_changes_something_first_takes_overdue_snapshots_away`.
//! - A clock before the newest start drops all: `clock::a_clock_before_the_newest_start_drops_all_snapshots`.
//! - An expired record goes as soon as no live snapshot started before its expiry, and not before:
//!   `reaping::the_second_step_looks_again`, `reaping::a_finished_scan_holds_back_what_its_last_page_may_be_asked_for_again`,
//!   `reaping::a_snapshot_from_before_the_expiry_holds_a_record_back_until_it_is_over`.
//! - Blobs (`blob::tests`). A segment's expiry while uploading and afterwards:
//!   `expiry::a_segment_of_an_unfinished_upload_is_gone_within_a_minute_after_the_timeout`,
//!   `expiry::a_finished_blob_outlives_no_segment`. Renewal moves all, checked by upload:
//!   `lost::a_repeated_renewal_undoes_nothing_that_others_did_in_between`, `expiry::what_expires_before_a_renewal_comes_is_missing`.
//!   A missing segment: `racing::a_read_that_misses_a_segment_of_an_upload_that_is_gone_starts_over`,
//!   `racing::a_read_that_misses_a_segment_of_a_live_upload_says_so`. Delete and what it leaves:
//!   `expiry::what_a_delete_leaves_is_gone_within_a_minute`, `lost::a_repeated_delete_removes_only_what_its_first_attempt_read`;
//!   of a losing upload: `expiry::what_an_upload_leaves_that_lost_is_gone_within_a_minute`.
//!
//! That of embedded.md, one clock reading per batch and one instant per look: `embedded::tests::sync`, `embedded::tests::instant`.

mod acked;
mod basics;
mod clock;
mod guards;
mod memory;
mod model;
mod reaping;
mod rig;
mod scans;
mod server;
mod stored;
mod writes;
