//! Images of registries: of Docker's own (`tools/docker-registry`) on loopback, and of one that lies.

mod lying;
mod server;

use std::{fs, path::PathBuf, time::Duration};

use periapt_host_api::Digest;
use periapt_image::{
    Image, ImageLimits, ImageReference, ImageRegistry, PlainHttp, PullError, PullOptions, PullProgress,
    PulledImage, RegistryCredentials,
};
use periapt_transport::testing::free_ports;
use serde_json::json;

use crate::{
    made::{Work, chosen, file, image, layer, own_architecture, work},
    tools::{by_umoci, copied},
};
use lying::{Request, Response, lying};
use server::{PASSWORD, Registry, USER};

fn options() -> PullOptions {
    PullOptions { plain_http: PlainHttp::OnLoopback, wait: Duration::from_secs(20), ..PullOptions::default() }
}

fn credentials(password: &str) -> Option<RegistryCredentials> {
    Some(RegistryCredentials { username: USER.into(), password: password.into() })
}

/// Pulls an image into `pulled` of a test's directory, and returns what was told on the way.
fn pulled(
    work: &Work,
    reference: &str,
    options: PullOptions,
) -> Result<(PulledImage, Vec<PullProgress>), PullError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().unwrap();
    let registry = ImageRegistry::new(options).unwrap();
    let reference: ImageReference = reference.parse().unwrap();
    let mut told = Vec::new();
    let result =
        runtime.block_on(registry.pull(&reference, &work.path("pulled"), |progress| told.push(progress)));
    if result.is_err() {
        assert!(!work.path("pulled").exists());
        let left = fs::read_dir(work.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".new-")), "a rest was left");
    }
    result.map(|pulled| (pulled, told))
}

/// Returns the error of a pull, which is one line.
fn refused(reference: &str, options: PullOptions) -> String {
    let error = pulled(&work(), reference, options).map(|(pulled, _)| pulled.pinned).unwrap_err().to_string();
    assert!(!error.contains('\n') && error.len() < 500, "{error}");
    error
}

fn layers(image: &Image) -> Vec<Digest> {
    image.layers.iter().map(|layer| layer.diff_id).collect()
}

#[test]
fn an_image_is_pulled_by_its_tag_and_by_the_digest_that_it_had() {
    let registry = Registry::start(&server::Access::Open);
    let made = work();
    by_umoci(&made);
    let target = format!("docker://{}/example/web:1", registry.host());
    copied(&made, &["--dest-tls-verify=false", "oci:layout:web", &target]);
    let (_, original) = chosen(&made.path("layout"), &ImageLimits::default()).unwrap();

    let by_tag = work();
    let (pull, told) = pulled(&by_tag, &format!("{}/example/web:1", registry.host()), options()).unwrap();
    assert_eq!(layers(&pull.image), layers(&original));
    let digest = pull.pinned.digest().unwrap();
    assert_eq!(pull.pinned.to_string(), format!("{}/example/web:1@sha256:{digest}", registry.host()));
    let last = told.last().unwrap();
    assert_eq!((last.layer, last.layers, last.bytes), (2, 2, last.total));
    assert!(told.windows(2).all(|pair| pair[0].bytes <= pair[1].bytes));
    let (file, image) = chosen(&by_tag.path("pulled"), &ImageLimits::default()).unwrap();
    assert!(file.inspect(&image).unwrap().merged.entries.contains_key("usr/bin/web"));

    // The tag moves on, and the digest does not.
    let other = image_with("other");
    let second = work();
    second.layout(&other.files());
    copied(&second, &["--dest-tls-verify=false", "oci:layout:latest", &target]);
    let (again, _) = pulled(&work(), &pull.pinned.to_string(), options()).unwrap();
    assert_eq!(layers(&again.image), layers(&original));
    let (moved, _) = pulled(&work(), &format!("{}/example/web:1", registry.host()), options()).unwrap();
    assert_ne!(moved.pinned.digest(), Some(digest));

    let host = registry.host();
    assert_eq!(
        refused(&format!("{host}/example/web:2"), options()),
        format!("example/web of registry {host} has no 2")
    );
    let unknown = refused(&format!("{host}/example/nothing:1"), options());
    assert!(unknown.ends_with("example/nothing") || unknown.ends_with("has no 1"), "{unknown}");
    let missing = "0".repeat(64);
    let unknown = refused(&format!("{host}/example/web@sha256:{missing}"), options());
    assert_eq!(unknown, format!("example/web of registry {host} has no sha256:{missing}"));
    let without = PullOptions { plain_http: PlainHttp::Refused, ..options() };
    let plain = refused(&format!("{host}/example/web:1"), without);
    assert!(plain.starts_with(&format!("registry {host} cannot be reached: ")), "{plain}");
    // What is there already stays.
    let taken = work();
    fs::create_dir(taken.path("pulled")).unwrap();
    let reference = format!("{host}/example/web:1");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let puller = ImageRegistry::new(options()).unwrap();
    let error = runtime
        .block_on(puller.pull(&reference.parse().unwrap(), &taken.path("pulled"), |_| {}))
        .unwrap_err();
    assert!(error.to_string().ends_with("it exists already"), "{error}");
}

fn image_with(content: &str) -> crate::made::Made {
    image(&[layer(&[file("a", content)])])
}

#[test]
fn an_image_of_another_architecture_is_refused_before_its_layers_come() {
    let registry = Registry::start(&server::Access::Open);
    let other = if own_architecture() == "amd64" { "arm64" } else { "amd64" };
    let mut made = image_with("x");
    made.configuration["architecture"] = json!(other);
    let work = work();
    work.layout(&made.files());
    let reference = format!("{}/web:1", registry.host());
    copied(&work, &["--dest-tls-verify=false", "oci:layout:latest", &format!("docker://{reference}")]);
    let expected = format!("the image is for linux/{other}, and linux/{} is wanted", own_architecture());
    assert_eq!(refused(&reference, options()), expected);
}

#[test]
fn a_registry_with_tls_and_users_is_asked_with_both() {
    let registry = Registry::start(&server::Access::Users);
    let made = work();
    made.layout(&image_with("x").files());
    let reference = format!("{}/web:1", registry.host());
    let user = format!("--dest-creds={USER}:{PASSWORD}");
    copied(&made, &["--dest-tls-verify=false", &user, "oci:layout:latest", &format!("docker://{reference}")]);

    let own = || PullOptions { authorities: Some(registry.authority().to_owned()), ..options() };
    let secure = || PullOptions { plain_http: PlainHttp::Refused, ..own() };
    let given = |password: &str| PullOptions { credentials: credentials(password), ..secure() };
    let (pull, _) = pulled(&work(), &reference, given(PASSWORD)).unwrap();
    assert_eq!(pull.image.layers.len(), 1);

    let host = registry.host();
    let expected = format!(
        "registry {host} asks for credentials for web, and none are given; or there is no such repository"
    );
    assert_eq!(refused(&reference, secure()), expected);
    let wrong = refused(&reference, given("wrong"));
    assert_eq!(wrong, format!("registry {host} refuses the credentials of {USER} for web"));
    let strange = PullOptions { authorities: None, ..given(PASSWORD) };
    let untrusted = refused(&reference, strange);
    assert!(untrusted.ends_with("its certificate is of an authority that is not trusted"), "{untrusted}");
    let plain = refused(&reference, PullOptions { plain_http: PlainHttp::OnLoopback, ..given(PASSWORD) });
    assert!(plain.starts_with(&format!("registry {host}")), "{plain}");
    assert!(!format!("{:?}", given(PASSWORD)).contains(PASSWORD), "a password is in no log");
}

#[test]
fn a_registry_that_is_not_there_is_told_at_once() {
    let port = free_ports(1).unwrap()[0];
    let error = refused(&format!("127.0.0.1:{port}/web:1"), options());
    assert!(error.starts_with(&format!("registry 127.0.0.1:{port} cannot be reached: ")), "{error}");
    let error = refused("registry.invalid/web:1", options());
    assert!(error.starts_with("registry registry.invalid cannot be reached: "), "{error}");
    let bad =
        ImageRegistry::new(PullOptions { authorities: Some("no PEM".into()), ..options() }).unwrap_err();
    assert!(bad.to_string().starts_with("authorities of the registry: "), "{bad}");
}

/// A registry that has one image, and asks for a token.
fn with_tokens(request: &Request, made: &[(String, Vec<u8>)]) -> Response {
    if request.path.starts_with("/token") {
        assert_eq!(request.path, "/token?scope=repository:web:pull&service=a%20registry");
        return match request.header("authorization") {
            None => Response::of(200, br#"{"token":"for-all"}"#),
            Some(_) => Response::of(200, br#"{"access_token":"for-jane"}"#),
        };
    }
    let Some(token) = request.header("authorization") else {
        let challenge = format!("Bearer realm=\"http://{}/token\",service=\"a registry\"", request.host);
        return Response::of(401, b"").with("WWW-Authenticate", &challenge);
    };
    if token != "Bearer for-jane" {
        return Response::of(403, br#"{"errors":[{"code":"DENIED"}]}"#);
    }
    lying::served(request, made)
}

#[test]
fn a_token_is_fetched_where_the_registry_says() {
    let made = lying::blobs(&image_with("x"));
    let registry = lying(move |request| with_tokens(request, &made));
    let reference = format!("{}/web:1", registry.host);
    let given = PullOptions { credentials: credentials(PASSWORD), ..options() };
    assert_eq!(pulled(&work(), &reference, given).unwrap().0.image.layers.len(), 1);
    let error = refused(&reference, options());
    assert!(error.contains("asks for credentials for web"), "{error}");

    for (challenge, expected) in [
        (
            "Bearer realm=\"http://example.invalid/token\"",
            "it leads to http://example.invalid/token?scope=repository:web:pull, which has no TLS",
        ),
        ("Bearer realm=\"nowhere\"", "it leads to nowhere?scope=repository:web:pull, which has no TLS"),
        ("Bearer realm=\"http://[x/\"", "it asks for a token of something that is no URL"),
        ("Negotiate", "it asks for credentials in a form other than Basic and Bearer"),
    ] {
        let registry = lying(move |_| Response::of(401, b"").with("WWW-Authenticate", challenge));
        let error = refused(&format!("{}/web:1", registry.host), options());
        assert!(error.ends_with(expected) || error.contains("no URL"), "{challenge}: {error}");
    }
}

#[test]
fn a_redirect_is_followed_without_the_credentials() {
    let blobs = lying::blobs(&image_with("x"));
    let store = {
        let blobs = blobs.clone();
        lying(move |request| {
            assert_eq!(request.header("authorization"), None);
            lying::served(request, &blobs)
        })
    };
    let elsewhere = store.host.clone();
    let registry = lying(move |request| {
        if request.header("authorization").is_none() {
            return Response::of(401, b"").with("WWW-Authenticate", "Basic realm=\"x\"");
        }
        match request.path.contains("/blobs/") {
            true => Response::of(307, b"").with("Location", &format!("http://{elsewhere}{}", request.path)),
            false => lying::served(request, &blobs),
        }
    });
    let given = PullOptions { credentials: credentials(PASSWORD), ..options() };
    let (pull, _) = pulled(&work(), &format!("{}/web:1", registry.host), given).unwrap();
    assert_eq!(pull.image.layers.len(), 1);

    for (location, expected) in [
        ("/v2/web/manifests/1", "it redirects again and again"),
        ("http://example.invalid/x", "it leads to http://example.invalid/x, which has no TLS"),
        ("file:///etc/passwd", "something that is no URL"),
        ("", "it redirects to something that is no URL"),
    ] {
        let registry = lying(move |_| Response::of(302, b"").with("Location", location));
        let error = refused(&format!("{}/web:1", registry.host), options());
        assert!(error.contains(expected) || error.contains("which has no TLS"), "{location}: {error}");
    }
}

/// A change of a true answer.
type Lie = Box<dyn Fn(&Request, Response) -> Response + Send + Sync>;

#[test]
fn what_a_registry_lies_about_is_refused_and_nothing_stays() {
    let blobs = lying::blobs(&image_with("x"));
    let layer = {
        let path = &blobs.last().unwrap().0;
        path.clone()
    };
    let lies: Vec<(&str, Lie)> =
        vec![
            (
                "its bytes have the digest sha256:",
                Box::new({
                    let layer = layer.clone();
                    move |request, answer| match request.path == layer {
                        true => Response::of(200, &vec![7; answer.body.len()]),
                        false => answer,
                    }
                }),
            ),
            (
                "it has 0 bytes, and is to have ",
                Box::new({
                    let layer = layer.clone();
                    move |request, answer| if request.path == layer { Response::of(200, b"") } else { answer }
                }),
            ),
            (
                "it has more than the ",
                Box::new({
                    let layer = layer.clone();
                    move |request, answer| if request.path == layer { Response::endless() } else { answer }
                }),
            ),
            (
                "an answer has more than 4194304 bytes",
                Box::new(
                    |request, answer| {
                        if request.path.contains("/manifests/") { Response::endless() } else { answer }
                    },
                ),
            ),
            (
                "it answers with status 500: UNKNOWN out of order",
                Box::new(|_, _| {
                    Response::of(500, br#"{"errors":[{"code":"UNKNOWN","message":"out of order"}]}"#)
                }),
            ),
            ("limits its requests (status 429): try again later", Box::new(|_, _| Response::of(429, b""))),
            (
                "manifests and indexes of OCI and Docker are read",
                Box::new(|request, answer| {
                    if request.path.contains("/manifests/") { answer.typed("text/html") } else { answer }
                }),
            ),
            (
                "manifest sha256:",
                Box::new(|request, answer| {
                    if request.path.contains("/manifests/") {
                        Response::of(200, b"{").typed(crate::made::MANIFEST)
                    } else {
                        answer
                    }
                }),
            ),
            (
                "has no layer sha256:",
                Box::new(
                    move |request, answer| {
                        if request.path == layer { Response::of(404, b"<html>") } else { answer }
                    },
                ),
            ),
        ];
    for (expected, lie) in lies {
        let blobs = blobs.clone();
        let registry = lying(move |request| {
            let answer = lying::served(request, &blobs);
            lie(request, answer)
        });
        let error = refused(&format!("{}/web:1", registry.host), options());
        assert!(error.contains(expected), "{expected} is expected: {error}");
    }
    // A digest that the operator names is checked as well.
    let wanted = Digest::of(b"something else");
    let registry = lying(move |request| match request.path.contains("/manifests/") {
        true => Response::of(200, &blobs[0].1).typed(crate::made::MANIFEST),
        false => lying::served(request, &blobs),
    });
    let error = refused(&format!("{}/web@sha256:{wanted}", registry.host), options());
    assert!(error.contains("sends a manifest that does not match its digest"), "{error}");
}

#[test]
fn a_registry_that_falls_silent_is_left_and_one_that_breaks_off_is_asked_again() {
    let blobs = lying::blobs(&image_with("x"));
    let silent = lying(|_| Response::silent());
    let quick = PullOptions { wait: Duration::from_millis(300), ..options() };
    let error = refused(&format!("{}/web:1", silent.host), quick);
    assert!(error.ends_with("no answer within 0 s"), "{error}");
    let slow = {
        let blobs = blobs.clone();
        lying(move |request| match request.path.contains("/blobs/") {
            true => Response::trickling(),
            false => lying::served(request, &blobs),
        })
    };
    let bounded = PullOptions {
        limits: ImageLimits { time: Duration::from_millis(500), ..ImageLimits::default() },
        ..options()
    };
    assert_eq!(refused(&format!("{}/web:1", slow.host), bounded), "the image was not pulled within 0 s");
    let breaks = std::sync::atomic::AtomicUsize::new(0);
    let registry = lying(move |request| {
        let answer = lying::served(request, &blobs);
        let is_first = request.path.contains("/blobs/")
            && breaks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        if is_first { answer.cut_off() } else { answer }
    });
    assert!(pulled(&work(), &format!("{}/web:1", registry.host), options()).is_ok());
}

/// Returns the path of the registry's program.
fn program() -> PathBuf {
    static FOUND: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    FOUND.get_or_init(|| crate::tools::found("docker-registry")).clone()
}
