use super::*;

fn reply(line: &str) -> Reply {
    let (code, message) = line.split_once(' ').unwrap_or((line, ""));
    Reply::Error { code: code.to_owned(), message: message.to_owned() }
}

fn error(line: &str) -> Error {
    error_of(&reply(line)).unwrap()
}

/// What servers before 7.0 make of an error inside a script.
fn wrapped(line: &str) -> String {
    format!(
        "ERR Error running script (call to f_7e261e95a4e34decacc61e8157a2bf6b9e5bed72): @user_script:12: @user_script: 12: -{line}"
    )
}

const LATER: [&str; 7] = [
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "CLUSTERDOWN Hash slot not served",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "NOREPLICAS Not enough good replicas to write.",
    "EXECABORT Transaction discarded because of previous errors.",
];

#[test]
fn what_did_nothing_is_waited_out() {
    for line in LATER {
        for line in [line.to_owned(), wrapped(line)] {
            let Some(Meaning::Later(error)) = meaning(&reply(&line)) else { panic!("{line}") };
            assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::NotApplied));
            assert!(error.message().contains(
                line.split(['-', ' ']).rfind(|word| word.len() > 3 && word.chars().all(char::is_uppercase)).map_or("", |_| "(")
            ));
        }
    }
    for line in [
        "READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    ] {
        for line in [line.to_owned(), wrapped(line)] {
            assert!(matches!(meaning(&reply(&line)), Some(Meaning::Elsewhere(_))), "{line}");
        }
    }
    assert!(matches!(meaning(&reply("ERR max number of clients reached")), Some(Meaning::Later(_))));
}

#[test]
fn each_code_of_the_contract() {
    for (line, code) in [
        ("OOM command not allowed when used memory > 'maxmemory'.", Code::OutOfMemory),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", Code::Incompatible),
        ("WRONGPASS invalid username-password pair or user is disabled.", Code::Unauthenticated),
        ("NOAUTH Authentication required.", Code::Unauthenticated),
        ("NOPERM this user has no permissions to run the 'get' command", Code::Unauthenticated),
        ("NOPERM this user has no permissions to access one of the keys used as arguments", Code::Unauthenticated),
        ("ERR unknown command 'EVALSHA', with args beginning with: 'abc' ", Code::Incompatible),
        ("ERR Protocol error: invalid bulk length", Code::Incompatible),
        ("ERR syntax error", Code::Internal),
        ("CROSSSLOT Keys in request don't hash to the same slot", Code::Internal),
        ("MOVED 1234 10.0.0.1:6379", Code::Unavailable),
    ] {
        assert_eq!(error(line).code(), code, "{line}");
        assert_eq!(error(&wrapped(line)).code(), code, "wrapped: {line}");
    }
    assert!(error_of(&Reply::Nil).is_none());
}

#[test]
fn a_permission_error_names_the_command() {
    assert!(error("NOPERM this user has no permissions to run the 'get' command").message().contains(" GET"));
    assert!(
        error("NOPERM this user has no permissions to run the 'client|setname' command").message().contains("CLIENT|SETNAME")
    );
    assert!(error("NOPERM User u has no permissions to run the 'get' command").message().contains(" GET"));
    assert!(error("ERR unknown command `EVALSHA_RO`, with args beginning with: ").message().contains("EVALSHA_RO"));
    assert!(
        error("NOPERM No permissions to access a key").message().contains("keys")
            || error("NOPERM No permissions to access a key").message().contains("command")
    );
}

#[test]
fn a_command_inside_a_script_is_found_by_its_line() {
    let text = "local t = redis.call('TIME')\nlocal r = redis.call(\"GET\", KEYS[1])\nreturn r\n";
    let said = "ERR The user executing the script can't run this command or subcommand script: fd758d15, on @user_script:2.";
    let plain = plain(reply(said), text);
    let error = error_of(&plain).unwrap();
    assert!(matches!(&plain, Reply::Error { code, .. } if code == "NOPERM"));
    assert!(error.message().contains(" GET"), "{error}");
    assert_eq!((error.code(), error.outcome()), (Code::Unauthenticated, Outcome::Unknown), "a script is not rolled back");
}

#[test]
fn wrapped_errors_become_plain() {
    let plain = plain(reply(&wrapped("OOM command not allowed when used memory > 'maxmemory'.")), "");
    assert!(matches!(plain, Reply::Error { code, .. } if code == "OOM"));
}

/// What servers said to a script whose second line calls SET on a key of another type, in these very words.
#[test]
fn each_servers_own_words_inside_a_script() {
    const RAN: &str = "ERR Error running script (call to f_7e261e95a4e34decacc61e8157a2bf6b9e5bed72): @user_script:2: ";
    let text = "local now = redis.call('TIME')\nredis.call('SET', KEYS[1], '')\n";
    let old = |said: &str| format!("{RAN}{said}");
    for (said, code, named) in [
        // Redis 6.2.14: a command that ran, and commands that were refused.
        (old("WRONGTYPE Operation against a key holding the wrong kind of value"), Code::Incompatible, "foreign type"),
        (old("@user_script: 2: -OOM command not allowed when used memory > 'maxmemory'."), Code::OutOfMemory, "maxmemory"),
        (
            old("@user_script: 2: The user executing the script can't run this command or subcommand"),
            Code::Unauthenticated,
            "command SET",
        ),
        (
            old("@user_script: 2: The user executing the script can't access at least one of the keys mentioned in the command \
                 arguments"),
            Code::Unauthenticated,
            "keys",
        ),
        (old("@user_script: 2: Unknown Redis command called from Lua script"), Code::Incompatible, "does not know a command"),
        // Valkey 9.1.2.
        (
            "WRONGTYPE Operation against a key holding the wrong kind of value script: on @user_script:2.".to_owned(),
            Code::Incompatible,
            "foreign type",
        ),
        (
            "OOM command not allowed when used memory > 'maxmemory'. script: on @user_script:2.".to_owned(),
            Code::OutOfMemory,
            "maxmemory",
        ),
        (
            "ERR ACL failure in script: User u has no permissions to run the 'set' command script: on @user_script:2.".to_owned(),
            Code::Unauthenticated,
            "command SET",
        ),
        (
            "ERR ACL failure in script: No permissions to access a key script: on @user_script:2.".to_owned(),
            Code::Unauthenticated,
            "keys",
        ),
        (
            "ERR Unknown command called from script script: on @user_script:2.".to_owned(),
            Code::Incompatible,
            "does not know a command",
        ),
    ] {
        let error = error_of(&plain(reply(&said), text)).unwrap();
        assert_eq!(error.code(), code, "{said}: {error}");
        assert!(error.message().contains(named), "{said}: {error}");
    }
}

#[test]
fn no_argument_is_shown() {
    for line in [
        "ERR unknown command 'FOO', with args beginning with: 'my-secret-key' 'my-secret-value'",
        "ERR something about \"my-secret-key\"",
        "ERR Error running script (call to f_00): @user_script:1: @user_script: 1: something 'my-secret-key'",
    ] {
        assert!(!error(line).message().contains("secret"), "{line}");
    }
}

#[test]
fn words_inside_a_value_mean_nothing() {
    // F09: only the place where the server puts its code is looked at.
    for line in ["ERR value NOPROTO READONLY LOADING", "ERR Error compiling script: NOSCRIPT"] {
        assert!(matches!(meaning(&reply(line)), Some(Meaning::Failed(_))), "{line}");
    }
}
