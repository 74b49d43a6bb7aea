# SPDX-License-Identifier: Apache-2.0
# The only entry point. `./just` sets the machine up first, then runs these with the programs of .venv.
# A command of `longfat` is a recipe of the same name, and its line here is what `longfat --help` says of it, with its
# options behind; a test holds them together.

set positional-arguments
set no-exit-message
set no-cd # what a command is given is relative to the folder of the user

export LONGFAT_ROOT := env("LONGFAT_ROOT", justfile_directory())
export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

[private]
default:
    @just --justfile '{{ justfile() }}' --list --unsorted

# Add the tools of developers to .venv, unless they are there: what the recipes that name this one need besides
[private]
[working-directory('.')]
development:
    @sha256sum --check --status .venv/development 2>/dev/null || { \
        echo "./just: adding the tools of developers to .venv (about a minute)" >&2 && \
        flock .venv.lock python -m pip install --quiet --disable-pip-version-check --require-hashes \
            --requirement requirements-dev.lock && sha256sum requirements-dev.lock >.venv/development; }

# Run what is missing of a study, judge its claims, draw its figures and write the report (--only --profile --stack --backend --jobs --seed --results --sample --open --all --json; --on: docs/cluster.md)
[group('study')]
reproduce STUDY *OPTIONS:
    @longfat reproduce "$@"

# Print every claim's verdict by the committed evidence alone (--json --epoch --stack; docs/evidence.md)
[group('study')]
verdicts *STUDIES:
    @longfat verdicts "$@"

# Test claims at values of a setting that the paper does not state, and add the runs to the evidence (STUDY [UNKNOWN --claims CLAIMS --at VALUES])
[group('study')]
identify STUDY *OPTIONS:
    @longfat identify "$@"

# Keep the results of runs in the repository, and verify them by running them again (add STUDY, fill STUDY... --repetitions --budget, verify [STUDY] --sample --budget, merge DIR; docs/evidence.md)
[group('study')]
evidence *ARGUMENTS:
    @longfat evidence "$@"

# Create the folder of a new study that runs without changes (docs/study-tutorial.md)
[group('study')]
new NAME:
    @longfat new "$@"

# Print a study's factors, fixed settings, exclusions and cost; write nothing (--expanded --json)
[group('study')]
plan STUDY *OPTIONS:
    @longfat plan "$@"

# Write the lock and execute the runs that have no valid record, or a shard of them (--only --profile --stack --backend --jobs --seed --results; --shard --until --on --store: docs/cluster.md)
[group('study')]
run STUDY *OPTIONS:
    @longfat run "$@"

# Join the records of shards from anywhere, or from a store, into one results folder, each one checked (RESULTS DIR...; docs/cluster.md)
[group('study')]
merge RESULTS *FOLDERS:
    @longfat merge "$@"

# Build the dataset from the recorded runs, with the validity gates applied (--results)
[group('study')]
dataset STUDY *OPTIONS:
    @longfat dataset "$@"

# Judge the claims and draw the figures from the dataset (--results --all --json)
[group('study')]
analyse STUDY *OPTIONS:
    @longfat analyse "$@"

# Write report.html from verdicts and figures (--results --open)
[group('study')]
report STUDY *OPTIONS:
    @longfat report "$@"

# Pack a study's results as one RO-Crate for an archive, with an artifact appendix (--results --output; docs/citing.md)
[group('study')]
package STUDY *OPTIONS:
    @longfat package "$@"

# Store dataset and verdicts as the committed reference that later results are compared with (--results)
[group('study')]
reference STUDY *OPTIONS:
    @longfat reference "$@"

# Compare two results folders, or two stacks of a study, claim by claim (DIR or STUDY:STACK; --all --exit-code --json)
[group('study')]
compare A B *OPTIONS:
    @longfat compare "$@"

# Hold an algorithm against RFC 9743 (BCP 133), beside Reno, CUBIC and BBR: its report card (ALGORITHM or FILE.c...; --all --keep --jobs; docs/evaluate.md)
[group('study')]
evaluate *ALGORITHMS:
    @longfat evaluate "$@"

# Reproduce the study that shows the whole chain at work, in a minute or two (--backend mininet: on this machine's kernel)
[group('study')]
smoke *OPTIONS:
    @longfat smoke "$@"

# Write the front page of the reports, results/index.html: every study with its artifacts and claims (--open)
[group('study')]
reports *OPTIONS:
    @longfat reports "$@"

# Print one run: settings declared and achieved, gates, metrics and files (--results --json)
[group('run')]
show RUN *OPTIONS:
    @longfat show "$@"

# Run one run once more and compare it to the byte with what is kept (--results --json)
[group('run')]
again RUN *OPTIONS:
    @longfat again "$@"

# Run one run again with a capture of every flow, and open it in Wireshark where there is one (--no-open --json)
[group('run')]
pcap RUN *OPTIONS:
    @longfat pcap "$@"

# Open a shell in the network of one run, where ping, ss, tc and tcpdump work in virtual time (STUDY POINT; -c COMMAND)
[group('run')]
shell RUN *OPTIONS:
    @longfat shell "$@"

# Print the JSON Schema of study.yaml, claims.yaml or figures.yaml, for editors (study, claims or figures)
[group('study')]
schema *OPTIONS:
    @longfat schema "$@"

# Print a script that completes commands, options, studies and runs: eval "$(longfat completion bash)"
[group('program')]
completion SHELL:
    @longfat completion "$@"

# Start the program itself, with its own commands and options (--help --version)
[group('program')]
longfat *ARGUMENTS:
    @longfat "$@"

# Open JupyterLab with the notebooks of all studies; its own packages are laid over .venv (docs/data.md)
[group('study')]
[working-directory('.')]
notebook *OPTIONS: development
    @VIRTUAL_ENV=.venv uv run --quiet --active --no-project --with-requirements analysis/requirements.lock \
        jupyter lab --ServerApp.root_dir="$PWD" --LabApp.default_url=/lab/tree/analysis/notebooks "$@"

# Run the tests: unit tests, contract tests, and tests that boot guests; on all cores, a single file on one
[group('check')]
[working-directory('.')]
test *OPTIONS: development
    @pytest --numprocesses auto --dist loadfile --no-loadscope-reorder "$@"

# Check a study's manifest and claims, and name every problem (STUDY --json; without a study: ./just lint)
[group('check')]
check *STUDY:
    @if [ $# -gt 0 ]; then longfat check "$@"; else just --justfile '{{ justfile() }}' lint; fi

# Run every linter, the type checker and the tests of the house rules
[group('check')]
[working-directory('.')]
lint: development
    ruff format --check .
    ruff check .
    mypy
    shellcheck just .ci/run images/customize.sh images/machine/customize.sh images/machine/root/usr/local/sbin/seed
    shellcheck infra/scan/run infra/terraform/environments/local/machine
    shellcheck infra/ansible/check infra/ansible/provision infra/ansible/run
    yamllint --strict .
    codespell
    pytest --quiet tests/unit/test_linters.py tests/unit/test_imports.py

# Validate a package against the profile Workflow Run RO-Crate; the validator is laid over .venv (docs/citing.md)
[group('check')]
package-check FILE: development
    @VIRTUAL_ENV='{{ justfile_directory() }}/.venv' uv run --quiet --active --no-project \
        --with-requirements '{{ justfile_directory() }}/tests/requirements.lock' \
        python '{{ justfile_directory() }}/tests/validate_crate.py' "$@"

# Build the documentation as a site, and end at a broken link; needs no network
[group('build')]
docs FOLDER=(justfile_directory() / "results/documentation"): development
    @python '{{ justfile_directory() }}/docs/site/build.py' "$1" && echo "documentation: $1/index.html"

# Check infra/: format, validity and tests of every Terraform module, and a security scan; needs terraform or tofu, and go
[group('check')]
[working-directory('.')]
infra-check *OPTIONS: development
    infra/scan/run
    LONGFAT_REQUIRE=terraform pytest tests/infra "$@"

# Run the linters of infra/ansible in production's profile, and let Ansible read every play (needs no network once set up)
[group('check')]
[working-directory('.')]
ansible-check:
    infra/ansible/check

# Format the Python code and fix what ruff can fix
[group('check')]
[working-directory('.')]
fmt: development
    ruff check --fix .
    ruff format .

# Reproduce the study that compares the kernel's congestion controls with their published laws (--jobs --results)
[group('check')]
conformance *OPTIONS:
    @longfat conformance "$@"

# Check in a minute whether the kernel behaves like the kernel of the references (--reference: renew kernels/checks.json)
[group('check')]
canary *OPTIONS:
    @longfat canary "$@"

# Reproduce the study that compares backends, on those that work here, and report where they agree (--backends --results)
[group('check')]
crosscheck *OPTIONS:
    @longfat crosscheck "$@"

# Measure the speed of runs on this machine, compared with simulators (--cases --peers --repeats --json)
[group('check')]
bench *OPTIONS:
    @longfat bench "$@"

# Stress the program with what a seed draws: kill, damage, fuzz or extreme (--minutes --seed --only; docs/reliability.md)
[group('check')]
[working-directory('.')]
stress KIND *OPTIONS: development
    @PYTHONPATH=tests:tests/unit:tests/fake python -m stress "$@"

# Make a lab of emulated machines, prepare it, run the smoke study on it and destroy it; as root, with terraform or tofu
[group('check')]
[working-directory('.')]
lab-test: development
    longfat build kernel --target x86-64
    LONGFAT_REQUIRE=infra pytest -m infra tests/integration/test_lab_end_to_end.py

# Make, prepare and destroy the machines of a lab (up ENV, provision ENV, down ENV, list, sweep; docs/infrastructure.md)
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

# Resolve the newest versions of all dependencies into requirements.lock, and of developers' tools beside it
[group('build')]
[working-directory('.')]
lock: development
    uv pip compile pyproject.toml --universal --python-version 3.11 --upgrade --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' --output-file requirements.lock
    uv pip compile --group dev --constraint requirements.lock --universal --python-version 3.11 --upgrade \
        --generate-hashes --quiet --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' \
        --output-file requirements-dev.lock
    uv pip compile infra/scan/requirements.in --universal --python-version 3.11 --upgrade --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' \
        --output-file infra/scan/requirements.lock
    uv pip compile infra/ansible/requirements.in --universal --python-version 3.11 --upgrade --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' \
        --output-file infra/ansible/requirements.lock
    uv pip compile analysis/requirements.in --constraint requirements.lock --universal --python-version 3.11 --upgrade \
        --generate-hashes --quiet --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' \
        --output-file analysis/requirements.lock
    uv pip compile tests/requirements.in --universal --python-version 3.11 --upgrade --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' \
        --output-file tests/requirements.lock

# Remove what the tools leave in the checkout; results, .venv and the cache folder stay
[group('build')]
[working-directory('.')]
clean:
    rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
    find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
