//! What is missing at the server is told by its name, whichever script meets it.

use futures_util::future::join_all;

use super::*;

/// Every operation of the project `id`, as that user: one script each, or the way of it that differs.
async fn all(rig: &Rig, id: &str, user: &str) -> Vec<(&'static str, Result<(), Error>)> {
    let open = |url: &str| Project::open(url, ProjectId::new("w", id).unwrap(), ProjectOptions::default()).unwrap();
    let helper = open(&rig.server.url());
    let project = open(&rig.server.url().replace("redis://", &format!("redis://{user}:secret@")));
    for key in ["there", "gone"] {
        set(&state(&helper), key, "1").await;
    }
    let held = take(&helper.locks(), "held").await;
    let [kept, freed] = [take(&helper.locks(), "kept").await, take(&helper.locks(), "freed").await].map(|lease| lease.id());
    let options = StateWriteOptions { ttl_seconds: Some(60), expected_version: None };
    let mut results = vec![
        ("get", state(&project).get("there").await.map(drop)),
        ("set what is new", state(&project).set("new", "1", options).await.map(drop)),
        ("set what is there", state(&project).set("there", "1", StateWriteOptions::default()).await.map(drop)),
        ("delete", state(&project).delete("gone", None).await.map(drop)),
        ("acquire", project.locks().acquire("free", LockOptions::default()).await.map(drop)),
        ("acquire what is held", project.locks().acquire("held", LockOptions::default()).await.map(drop)),
        ("wait", project.locks().acquire("held", waiting(50)).await.map(drop)),
    ];
    for (what, id) in [("renew", kept), ("release", freed)] {
        let attached = project.locks().attach(&id).await;
        results.push(("attach", attached.as_ref().map(|_| ()).map_err(Clone::clone)));
        if let Ok(Some(lease)) = attached {
            let done = if what == "renew" { lease.renew(None).await.map(drop) } else { lease.release().await.map(drop) };
            results.push((what, done));
        }
    }
    release(&held).await;
    results
}

/// The commands of docs/operations.md that this server knows.
fn commands(rig: &Rig) -> Vec<&'static str> {
    let page = zlink_test_servers::rights::of_data();
    let read_only = rig.say(&["COMMAND", "INFO", "eval_ro"]).items().iter().any(|info| !matches!(info, Value::Nil));
    page.into_iter().filter(|rule| rule.starts_with('+') && (read_only || !rule.ends_with("_ro"))).collect()
}

#[tokio::test]
async fn a_missing_right_is_named_by_every_script() {
    let rig = Rig::start(&[]);
    let commands = commands(&rig);
    let rounds = commands.iter().enumerate().map(async |(number, missing)| {
        let name = format!("u{number}");
        let mut user = vec!["ACL", "SETUSER", &name, "reset", "resetchannels", "on", ">secret"];
        user.extend(["~zlink-project{*", "&zlink-project:wake:*"]);
        user.extend(commands.iter().filter(|command| *command != missing));
        assert_eq!(rig.say(&user).text(), "OK");
        let mut told = 0;
        for (what, result) in all(&rig, &name, &name).await {
            let Err(error) = result else { continue };
            assert_eq!(error.code(), Code::Unauthenticated, "{what} without {missing}: {error}");
            let named = format!("the ACL user may not run the command {}", missing[1..].to_uppercase());
            assert!(error.message().contains(&named), "{what} without {missing}: {error}");
            told += 1;
        }
        told
    });
    let told: usize = join_all(rounds).await.into_iter().sum();
    assert!(told > 30, "{told}");
}

/// A command that somebody took away from the server altogether: no right mends that.
#[tokio::test]
async fn a_command_that_the_server_does_not_know_is_no_fault_of_ours() {
    for missing in ["ZADD", "ZREM", "SET", "HSET"] {
        let mut told = 0;
        let rig = Rig::start(&["--rename-command", missing, ""]);
        let project = rig.process();
        let results = [
            state(&project).set("new", "1", StateWriteOptions::default()).await.map(drop),
            state(&project).delete("new", None).await.map(drop),
            project.locks().acquire("free", LockOptions::default()).await.map(drop),
        ];
        for error in results.into_iter().filter_map(Result::err) {
            assert_eq!(error.code(), Code::Incompatible, "without {missing}: {error}");
            told += 1;
        }
        assert!(told > 0, "without {missing}");
    }
}
