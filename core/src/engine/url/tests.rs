use std::path::Path;

use super::*;
use crate::contract::Code;

fn path_of(url: &str) -> PathBuf {
    match Endpoint::parse(url).unwrap() {
        Endpoint::File(path) => path,
        other => panic!("{url} is {other:?}"),
    }
}

#[test]
fn memory_is_private_or_named() {
    assert!(matches!(Endpoint::parse("memory:").unwrap(), Endpoint::Memory(None)));
    assert!(matches!(Endpoint::parse("memory:a%20b:c").unwrap(), Endpoint::Memory(Some(name)) if name == "a b:c"));
}

#[test]
fn file_takes_a_path_in_every_usual_form() {
    assert_eq!(path_of("file:/var/lib/z"), Path::new("/var/lib/z"));
    assert_eq!(path_of("file:///var/lib/z"), Path::new("/var/lib/z"));
    assert_eq!(path_of("file://localhost/var/lib/z"), Path::new("/var/lib/z"));
    assert_eq!(path_of("file:data/z"), Path::new("data/z"));
    assert_eq!(path_of("file:%7E/z"), Path::new("~/z"));
    assert_eq!(path_of("file:/with%20space/%3F"), Path::new("/with space/?"));
}

#[test]
fn what_is_wrong_is_said() {
    for url in [
        "memory:a?b=1",
        "memory://",
        "memory:/a",
        "memory:%ff",
        "file:",
        "file:///%zz",
        "file://elsewhere/a",
        "file://localhosts/a",
        "file:/a%00b",
        "file:/a?b",
        "file:/a#b",
        "file:~",
        "file:~/a",
        "",
        "x",
        "http://h",
    ] {
        let error = Endpoint::parse(url).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{url}");
        assert_eq!(error.argument_name(), Some("url"), "{url}");
    }
}
