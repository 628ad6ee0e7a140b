//! Tests of images with a helper that is a shell.

use super::*;

const LAYER: &str = "layer";

/// Images below a temporary directory.
struct Bench {
    root: tempfile::TempDir,
    images: Images,
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

impl Bench {
    /// Creates images whose helper counts its runs, and then runs a script in their directory.
    fn new(script: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("incoming")).unwrap();
        let directory = root.path().join("images");
        let script = format!("cd {}; echo >>runs; {script}", directory.display());
        let helper = Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        };
        let images = Images::new(directory, root.path().join("incoming"), helper);
        Self { root, images }
    }

    /// Creates images whose helper unpacks one layer.
    fn unpacking() -> Self {
        let (layer, answer) = (digest(LAYER), answer());
        Self::new(&format!(
            "case $0 in *unpack*) mkdir -p layers/{layer}/files; : >owners/{}; echo '{answer}';; \
             *) cat >needed; rm -r layers/*;; esac",
            digest("archive")
        ))
    }

    async fn obtain(&self) -> Result<Arc<UsedImage>, ImageFailure> {
        let content = File::open("/dev/null").unwrap();
        self.images.obtain(digest("archive"), content).await
    }

    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.root.path().join("images/runs"));
        runs.map_or(0, |runs| runs.lines().count())
    }
}

/// Returns the answer of a helper that has unpacked one layer.
fn answer() -> String {
    let (image, layers, environment) = (digest("image"), vec![digest(LAYER)], vec!["A=1".to_owned()]);
    serde_json::to_string(&Unpacked { image, layers, environment }).unwrap()
}

#[tokio::test]
async fn an_image_is_unpacked_once_and_removed_after_its_last_container() {
    let bench = Bench::unpacking();
    let (one, other) = tokio::join!(bench.obtain(), bench.obtain());
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(Arc::ptr_eq(&one, &other));
    assert_eq!((bench.runs(), one.environment.as_slice()), (1, &["A=1".to_owned()][..]));
    assert_eq!(fs::read_dir(bench.root.path().join("incoming")).unwrap().count(), 0);

    assert!(!bench.images.let_go(one));
    bench.images.clean_up().await;
    assert_eq!(bench.runs(), 1, "another container uses it");
    assert!(bench.images.let_go(other));
    bench.images.clean_up().await;
    let needed = fs::read(bench.root.path().join("images/needed")).unwrap();
    assert_eq!(serde_json::from_slice::<Needed>(&needed).unwrap(), Needed::default());
    assert_eq!(bench.runs(), 2);
    bench.images.clean_up().await;
    assert_eq!(bench.runs(), 2, "nothing is left to remove");
    bench.obtain().await.unwrap();
}

#[tokio::test]
async fn a_helper_that_was_taken_over_names_nothing_but_layers() {
    let link = format!("mkdir -p layers/{}; ln -s / layers/{}/files", digest(LAYER), digest(LAYER));
    for (script, expected) in [
        (format!("echo '{}'", answer()), "has not unpacked it"),
        (format!("{link}; : >owners/{}; echo '{}'", digest("archive"), answer()), "has not unpacked it"),
        ("echo '{}'".to_owned(), "the helper's answer"),
        ("head -c 3000000 /dev/zero".to_owned(), "the helper's answer"),
        ("echo no world >&2; exit 2".to_owned(), "cannot be unpacked: no world"),
    ] {
        let error = Bench::new(&script).obtain().await.unwrap_err();
        assert!(matches!(error, ImageFailure::Host(_)) && error.to_string().contains(expected), "{error}");
    }
    let refused = Bench::new("echo 'layer 1 is damaged' >&2; exit 1").obtain().await.unwrap_err();
    assert_eq!(refused.to_string(), "the image is refused: layer 1 is damaged");
}
