//! The rights of callers.

use super::*;

#[test]
fn callers_have_the_rights_of_their_user() {
    let mut pod = Pod::new(&service(""));
    let read = PodCaller { user_id: Some(1_000), is_owner: false };
    let open = PodCaller { user_id: None, is_owner: false };
    for (caller, request, is_allowed) in [
        (open, PodRequest::SystemInfo, true),
        (open, PodRequest::Health { level: None, names: vec![] }, true),
        (open, PodRequest::Plan, false),
        (read, PodRequest::Plan, true),
        (read, exec(None), false),
        (read, PodRequest::Authorize, false),
        (read, PodRequest::AbortChange("1".to_owned()), false),
        (ROOT, PodRequest::Authorize, true),
    ] {
        let id = pod.send(caller, request.clone());
        let answer = pod.answers.remove(&id).unwrap();
        assert_eq!(!answer.is_err_and(|refusal| refusal.status == 401), is_allowed, "{caller:?} {request:?}");
    }
}
