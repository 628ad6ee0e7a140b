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
        ("mem=0 root-disk= virt-type=", ""),
        ("mem=00G", ""),
        ("mem=8G", "mem=8192M"),
        ("mem=1.5G cores=4", "mem=1536M cores=4"),
        (
            "root-disk=20G virt-type=virtual-machine mem=2T zones=a allocate-public-ip=true cpu-power=100",
            "mem=2097152M zones=a allocate-public-ip=true cpu-power=100 root-disk=20480M virt-type=virtual-machine",
        ),
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
        ("mem=much", "bad \"mem\" constraint: invalid size \"much\""),
        ("mem=-1", "bad \"mem\" constraint: invalid size \"-1\""),
        ("mem=G", "bad \"mem\" constraint: invalid size \"G\""),
        ("mem=K", "bad \"mem\" constraint: "),
        ("mem=KM", "bad \"mem\" constraint: invalid size \"KM\""),
        ("mem=MM", "bad \"mem\" constraint: invalid size \"MM\""),
        ("mem=0KMG", "bad \"mem\" constraint: invalid size \"0KMG\""),
        ("mem=1K", "hook-memory-limit expected a size from 1M to 1G, got \"1K\""),
        ("spaces=dmz", "constraint \"spaces\" is not supported, because endpoints are bound to spaces"),
        ("cpu-power=much", "bad \"cpu-power\" constraint: invalid number \"much\""),
        ("root-disk=20Q", "bad \"root-disk\" constraint: invalid size \"20Q\""),
        ("allocate-public-ip=perhaps", "\"perhaps\" is neither true nor false"),
        ("cores=many", "bad \"cores\" constraint: invalid number of cores \"many\""),
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
    assert!(Constraints { agents: odd, ..Constraints::default() }.check().is_err());
    let kept = KeptConstraints { mem: Some(8 << 30), ..KeptConstraints::default() };
    assert!(
        Constraints { kept, ..Constraints::default() }.check().is_err(),
        "more than is given, and nothing given"
    );
    let others = [(KeptConstraint::ImageId, "a b".to_owned())].into();
    let kept = KeptConstraints { mem: None, others };
    assert!(Constraints { kept, ..Constraints::default() }.check().is_err());
    assert!(read(&format!("image-id={}", "x".repeat(300))).is_err());
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

#[test]
fn what_no_sandbox_meets_is_kept_with_the_reason_and_hooks_get_what_there_is() {
    let asked = read("mem=8G instance-type=m5.large tags=ssd").unwrap();
    assert_eq!((asked.mem, asked.asked_mem()), (Some(1 << 30), Some(8 << 30)));
    let told = asked.without_effect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("mem=8192M (a hook has at most 1G"), "{told:?}");
    assert!(told[1].starts_with("instance-type=m5.large (units run in sandboxes"), "{told:?}");
    assert!(read("mem=512M tags=ssd zones=a cores=2 arch=amd64").unwrap().without_effect().is_empty());
    // An application shows the constraint as given, until its hooks get less.
    let shown = |limit: u64| {
        let budgets = BudgetSettings([(BudgetKey::HookMemoryLimit, limit)].into());
        Constraints::of(&asked.agents, &asked.kept, &budgets, Limited::Hooks).to_string()
    };
    assert_eq!(shown(1 << 30), "mem=8192M tags=ssd instance-type=m5.large");
    assert_eq!(shown(64 << 20), "mem=64M tags=ssd instance-type=m5.large");
}

#[test]
fn workloads_are_limited_in_place_of_hooks_and_those_of_a_model_both() {
    let asked = read("mem=8G cpu-power=150").unwrap();
    let (hooks, memory, cpu) =
        (BudgetKey::HookMemoryLimit, BudgetKey::WorkloadMemoryLimit, BudgetKey::WorkloadCpuLimit);
    let (of_hooks, of_workloads) = ([(hooks, Some(1 << 30))], [(memory, Some(8 << 30)), (cpu, Some(150))]);
    assert_eq!(asked.limits(Limited::Hooks).unwrap(), of_hooks.into());
    assert_eq!(asked.limits(Limited::Workloads).unwrap(), of_workloads.into());
    let both: BTreeMap<_, _> = of_hooks.into_iter().chain(of_workloads).collect();
    assert_eq!(asked.limits(Limited::Both).unwrap(), both);
    assert!(read("").unwrap().limits(Limited::Both).unwrap().values().all(Option::is_none));
    let error = read("mem=1M").unwrap().limits(Limited::Workloads).unwrap_err().to_string();
    assert!(error.contains("workload-memory-limit expected a size from 16M"), "{error}");

    // The setting counts, whichever of its names it was set by.
    let shown = |limits: &[(BudgetKey, u64)], limited| {
        let budgets = BudgetSettings(limits.iter().copied().collect());
        Constraints::of(&asked.agents, &asked.kept, &budgets, limited).to_string()
    };
    assert_eq!(shown(&[(memory, 8 << 30), (cpu, 150)], Limited::Workloads), "mem=8192M cpu-power=150");
    assert_eq!(shown(&[(memory, 64 << 20)], Limited::Workloads), "mem=64M");
    assert_eq!(shown(&[(hooks, 64 << 20)], Limited::Workloads), "");
    assert_eq!(shown(&[(hooks, 64 << 20), (cpu, 20)], Limited::Both), "mem=64M cpu-power=20");
}

#[test]
fn what_an_older_client_sends_is_read() {
    let older = serde_json::json!({"mem": 1 << 29, "agents": {"cores": 2}});
    let read: Constraints = serde_json::from_value(older.clone()).unwrap();
    assert_eq!(read.to_string(), "mem=512M cores=2");
    assert_eq!(serde_json::to_value(read).unwrap(), older);
}

#[test]
fn each_key_that_is_kept_is_stored_under_its_name() {
    for key in KeptConstraint::ALL {
        assert_eq!(serde_json::to_value(key).unwrap(), key.as_str());
        assert_eq!(KeptConstraint::named(key.as_str()), Some(key));
    }
}
