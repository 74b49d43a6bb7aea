# SPDX-License-Identifier: Apache-2.0
# The only entry point. `./just` sets the machine up first, then runs these with the programs of .venv.

set positional-arguments

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

[private]
default:
    @just --justfile '{{ justfile() }}' --list --unsorted

# Reproduce a study and judge its claims (--only --profile --stack --backend --jobs --seed --results --budget --sample; --on: docs/cluster.md)
[group('study')]
reproduce STUDY *OPTIONS:
    @longfat reproduce "$@"

# Print every claim's verdict by the committed evidence alone, in seconds (--json --epoch --stack; docs/evidence.md)
[group('study')]
verdicts *STUDIES:
    @longfat verdicts "$@"

# Execute the runs that decide a study's open claims most cheaply, and add them to the evidence (--budget --claims --profile --jobs)
[group('study')]
decide STUDY *OPTIONS:
    @longfat decide "$@"

# Find the values of a paper's unstated settings for which its claims hold: STUDY [UNKNOWN --on CLAIMS] (docs/evidence.md)
[group('study')]
identify STUDY *OPTIONS:
    @longfat identify "$@"

# Keep the results of runs in the repository, and verify them: add STUDY, verify [STUDY] --sample, merge DIR (docs/evidence.md)
[group('study')]
evidence *ARGUMENTS:
    @longfat evidence "$@"

# Create the folder of a new study that runs without changes (docs/study-tutorial.md)
[group('study')]
new NAME:
    @longfat new "$@"

# Print a study's factors, fixed settings, exclusions and cost; write nothing (--expanded: in full)
[group('study')]
plan STUDY *OPTIONS:
    @longfat plan "$@"

# Execute a study's missing runs (--only --profile --stack --backend --jobs --seed --results; --shard --until --on --store: docs/cluster.md)
[group('study')]
run STUDY *OPTIONS:
    @longfat run "$@"

# Join the records of shards from anywhere, or from a store, into one results folder: RESULTS DIR... (docs/cluster.md)
[group('study')]
merge RESULTS *FOLDERS:
    @longfat merge "$@"

# Build the dataset of a study from its raw runs (--results)
[group('study')]
dataset STUDY *OPTIONS:
    @longfat dataset "$@"

# Judge a study's claims and draw its figures from the dataset (--results)
[group('study')]
analyse STUDY *OPTIONS:
    @longfat analyse "$@"

# Write a study's report from verdicts and figures (--results)
[group('study')]
report STUDY *OPTIONS:
    @longfat report "$@"

# Reproduce the one-minute study that shows the whole chain at work (--backend mininet: on this machine's kernel)
[group('study')]
smoke *OPTIONS:
    @longfat smoke "$@"

# Write results/index.html: every study with its artifacts regenerated and its claims by verdict
[group('study')]
reports:
    @longfat reports

# Run the tests: unit tests, contract tests, and tests that boot guests
[group('check')]
test *OPTIONS:
    @pytest "$@"

# Name every problem in a study's files; without a study, run every linter, the type checker and the tests of the house rules
[group('check')]
check *STUDY:
    @if [ $# -gt 0 ]; then longfat check "$@"; else just --justfile '{{ justfile() }}' lint; fi

[private]
lint:
    ruff format --check .
    ruff check .
    mypy
    shellcheck just .ci/run images/customize.sh images/machine/customize.sh images/machine/root/usr/local/sbin/seed
    shellcheck infra/scan/run infra/terraform/environments/local/machine
    shellcheck infra/ansible/check infra/ansible/provision infra/ansible/run
    yamllint --strict .
    codespell
    pytest --quiet tests/unit/test_linters.py tests/unit/test_imports.py

# Check infra/: format, validity and tests of every Terraform module, and a security scan; needs terraform or tofu, and go
[group('check')]
infra-check *OPTIONS:
    infra/scan/run
    LONGFAT_REQUIRE=terraform pytest tests/infra "$@"

# Run the linters of infra/ansible in production's profile, and let Ansible read every play (needs no network once set up)
[group('check')]
ansible-check:
    infra/ansible/check

# Format the Python code and fix what ruff can fix
[group('check')]
fmt:
    ruff check --fix .
    ruff format .

# Reproduce the study _laws: the kernel's congestion controls against their published laws (--jobs --results)
[group('check')]
conformance *OPTIONS:
    @longfat conformance "$@"

# Check in a minute whether the kernel behaves like that of the references (--reference: renew kernels/canaries.json)
[group('check')]
canary *OPTIONS:
    @longfat canary "$@"

# Reproduce the study _crosscheck in virtual and in real time, and in ns-3 where it is installed (--backends --results)
[group('check')]
crosscheck *OPTIONS:
    @longfat crosscheck "$@"

# Measure the speed of the laboratory on this machine (--against COMMIT: as ratios; --cases --peers --study --json)
[group('check')]
bench *OPTIONS:
    @longfat bench "$@"

# Hold the project against what a seed draws: kill, damage, fuzz or extreme (--minutes --seed --only; docs/reliability.md)
[group('check')]
campaign KIND *OPTIONS:
    @PYTHONPATH=tests:tests/unit python -m campaigns "$@"

# Make a lab of emulated machines, prepare it, run the smoke study on it and destroy it; as root, with terraform or tofu
[group('check')]
lab-test:
    longfat build kernel --target x86-64
    LONGFAT_REQUIRE=infra pytest -m infra tests/integration/test_lab_end_to_end.py

# Make, prepare, list and destroy labs: up ENV, provision ENV, down ENV, list, sweep (--help; docs/infrastructure.md)
[group('lab')]
lab *ARGUMENTS:
    @longfat lab "$@"

# Build the kernel into the cache folder, unless it is there (--target x86-64: a Debian package)
[group('build')]
kernel *OPTIONS:
    @longfat build kernel "$@"

# Build the userland image into the cache folder, unless it is there
[group('build')]
image *OPTIONS:
    @longfat build image "$@"

# Build the disk of virtual machines into the cache folder, unless it is there; as root
[group('build')]
disk:
    @longfat build disk

# Build the whole testbed as a container image, to be loaded into Docker, Podman or Apptainer (docs/container.md)
[group('build')]
oci:
    @longfat build oci

# Resolve the newest versions of all dependencies into requirements.lock
[group('build')]
lock:
    uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --upgrade --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' --output-file requirements.lock
    uv pip compile infra/scan/requirements.in --universal --python-version 3.11 --upgrade --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' \
        --output-file infra/scan/requirements.lock
    uv pip compile infra/ansible/requirements.in --universal --python-version 3.11 --upgrade --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' \
        --output-file infra/ansible/requirements.lock

# Remove what the tools leave in the checkout; results, .venv and the cache folder stay
[group('build')]
clean:
    rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
    find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
