use super::*;

fn read(text: &str) -> Result<Constraints, String> {
    Constraints::parse([text]).map_err(|error| error.to_string())
}

#[test]
fn constraints_are_written_as_they_are_read() {
    for (text, written) in [
        ("", ""),
        ("mem=512", "mem=512M"),
        ("mem=1536K", "mem=1536K"),
        ("mem=1G tags=ssd,^slow,fast zones=b,a", "mem=1024M tags=fast,ssd,^slow zones=a,b"),
        ("cpu-cores=4 tags=ssd", "cores=4 tags=ssd"),
        ("mem= cores= tags= zones=", "cores= tags= zones="),
    ] {
        let constraints = read(text).unwrap();
        assert_eq!(constraints.to_string(), written, "{text}");
        assert_eq!(read(written).unwrap(), constraints);
        assert_eq!(constraints.check(), Ok(()));
    }
}

#[test]
fn what_is_no_constraint_is_told_why() {
    for (text, expected) in [
        ("mem", "malformed constraint \"mem\""),
        ("mem=1G mem=2G", "bad \"mem\" constraint: already set"),
        ("mem=2G", "hook-memory-limit expected a size from 1M to 1G, got \"2G\""),
        ("cpu-power=4", "constraint \"cpu-power\" is not here, because a hook runs on one core"),
        ("cores=many", "bad \"cores\" constraint: \"many\" is no number of cores"),
        ("instance-type=m5", "is not here, because units run in sandboxes"),
        ("colour=red", "unknown constraint \"colour\"; known are cores, mem, tags and zones"),
        ("tags=a,^a", "a is wanted, and not wanted"),
        ("tags=a/b", "bad \"tags\" constraint: "),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let many: Vec<_> = (0..=MAX_TAGS).map(|tag| format!("t{tag}")).collect();
    assert!(read(&format!("tags={}", many.join(","))).is_err());
    assert!(read(&format!("zones={}", many.join(","))).is_err());
    let odd = AgentConstraints { zones: Some(["a b".to_owned()].into()), ..AgentConstraints::default() };
    assert!(Constraints { mem: None, agents: odd }.check().is_err());
    assert!(Constraints { mem: Some(1), ..Constraints::default() }.check().is_err());
}

#[test]
fn an_agent_is_admitted_by_its_tags_its_zone_and_its_cores() {
    let agent: BTreeSet<TagName> = ["ssd", "fast"].iter().map(|tag| tag.parse().unwrap()).collect();
    let check = |text: &str, outer: &str, admitted| {
        let agents = read(text).unwrap().agents.or(&read(outer).unwrap().agents);
        assert_eq!(agents.admit(&agent, "a", 2), admitted, "{text:?} or {outer:?}");
    };
    check("", "", true);
    check("tags=ssd", "", true);
    check("tags=ssd,gpu", "", false);
    check("tags=ssd,^fast", "", false);
    check("zones=a,b", "", true);
    check("zones=b", "", false);
    check("cores=2", "", true);
    check("cores=3", "", false);
    check("cores=", "cores=3", true);
    check("", "tags=gpu", false);
    check("tags=", "tags=gpu", true);
    check("tags=ssd", "tags=gpu zones=b", false);
}

#[test]
fn an_architecture_is_checked_and_asks_nothing() {
    for text in ["arch=amd64", "arch=s390x", "arch="] {
        assert!(Constraints::parse([text]).unwrap().is_empty(), "{text}");
    }
    let both = Constraints::parse(["arch=arm64 cores=2"]).unwrap();
    assert_eq!(both.to_string(), "cores=2");
    let error = Constraints::parse(["arch=z80"]).unwrap_err().to_string();
    assert!(error.starts_with("bad \"arch\" constraint: \"z80\" is none of amd64, "), "{error}");
    assert_eq!(
        Constraints::parse(["arch=amd64 arch=arm64"]),
        Err(ConstraintsError::Twice("arch".to_owned()))
    );
}
