# SPDX-License-Identifier: Apache-2.0
# Recipes for development. Every other name is a command: `./just COMMAND` is `longfat COMMAND`. `./just` sets the
# machine up first, then runs these with the programs of .venv.

set positional-arguments
set no-exit-message
set no-cd # a path of the user is relative to the user's folder

export LONGFAT_ROOT := env("LONGFAT_ROOT", justfile_directory())
export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

[private]
default:
    @just --justfile '{{ justfile() }}' --list --unsorted

# Add the tools of developers to .venv, unless they are there; packages of an interrupted attempt may be incomplete
[private]
[working-directory('.')]
development:
    @sha256sum --check --status .venv/development 2>/dev/null || flock .venv.lock sh -euc ' \
        ! sha256sum --check --status .venv/development 2>/dev/null || exit 0; \
        echo "./just: adding the tools of developers to .venv (about a minute)" >&2; \
        again=; [ ! -e .venv/development.begun ] || again=--force-reinstall; touch .venv/development.begun; \
        python -m pip install $again --quiet --disable-pip-version-check --require-hashes \
            --requirement requirements-dev.lock; \
        sha256sum requirements-dev.lock >.venv/development; rm .venv/development.begun'

# Put `longfat` into ~/.local/bin, and complete its commands, studies, artifacts and runs in bash
[group('use')]
install-shell:
    @mkdir -p ~/.local/bin ~/.local/share/bash-completion/completions
    @printf '#!/bin/sh\nLONGFAT_ROOT="${LONGFAT_ROOT:-%s}" exec "%s/.venv/bin/longfat" "$@"\n' \
        '{{ justfile_directory() }}' '{{ justfile_directory() }}' >~/.local/bin/longfat
    @chmod +x ~/.local/bin/longfat
    @longfat completion bash >~/.local/share/bash-completion/completions/longfat
    @echo "~/.local/bin/longfat; a new shell completes its words, if ~/.local/bin is in PATH"

# Run the tests: unit tests, contract tests and tests that boot guests, on all cores
[group('check')]
[working-directory('.')]
test *OPTIONS: development
    @pytest --numprocesses auto --dist loadfile --no-loadscope-reorder "$@"

# Follow README, the quick start and how to read a verdict in a new checkout at FOLDER; compare what their commands print
[group('check')]
follow FOLDER: development
    @python '{{ justfile_directory() }}/tests/virtual/console.py' "$1"

# Run the linters, as `lint`; with a study this is the command `longfat check STUDY`
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
    shellcheck just .ci/run .ci/night images/customize.sh images/machine/customize.sh images/machine/root/usr/local/sbin/seed
    shellcheck infra/with-lock infra/scan/run infra/terraform/environments/local/machine
    shellcheck infra/ansible/check infra/ansible/provision infra/ansible/run
    yamllint --strict .
    codespell
    lint-imports --no-cache
    pytest --quiet tests/unit/test_linters.py

# Format the Python code and fix what ruff can fix
[group('check')]
[working-directory('.')]
fmt: development
    ruff check --fix .
    ruff format .

# Stress the program: kill, damage, fuzz, extreme, studies, hosts, places or turn (--minutes --seed --only)
[group('check')]
[working-directory('.')]
stress KIND *OPTIONS: development
    @PYTHONPATH=tests:tests/unit:tests/fake python -m stress "$@"

# Build the documentation as a site, with reports of all studies or of those named; a broken link is an error
[group('build')]
docs FOLDER=(justfile_directory() / "results/documentation") *STUDIES: development
    @python '{{ justfile_directory() }}/docs/site/build.py' "$@" && echo "documentation: $1/index.html"

# Collect all inputs in a folder; on a machine without a network: LONGFAT_ARCHIVE=FOLDER ./just COMMAND
[group('build')]
archive FOLDER:
    @longfat build archive "$@"

# Open JupyterLab with the notebooks of five studies (docs/data.md)
[group('build')]
[working-directory('.')]
notebook *OPTIONS: development
    @infra/with-lock analysis/requirements.lock \
        jupyter lab --ServerApp.root_dir="$PWD" --LabApp.default_url=/lab/tree/analysis/notebooks "$@"

# Validate a package against the profile Workflow Run RO-Crate
[group('check')]
package-check FILE: development
    @'{{ justfile_directory() }}/infra/with-lock' '{{ justfile_directory() }}/tests/requirements.lock' \
        python '{{ justfile_directory() }}/tests/validate_crate.py' "$@"

# Check infra/terraform: format, validity, tests and a security scan; needs terraform or tofu, and go
[group('check')]
[working-directory('.')]
infra-check *OPTIONS: development
    infra/scan/run
    LONGFAT_REQUIRE="terraform ${LONGFAT_REQUIRE-}" pytest -m terraform tests/infra "$@"

# Run the linters of infra/ansible, and let Ansible parse every play
[group('check')]
[working-directory('.')]
ansible-check:
    infra/ansible/check

# Make a lab of emulated machines, run a study on it and destroy it; as root, with terraform or tofu
[group('check')]
[working-directory('.')]
lab-test: development
    longfat build kernel --target x86-64
    LONGFAT_REQUIRE=infra pytest -m infra tests/integration/test_lab_end_to_end.py

# Resolve the newest versions of all dependencies into the files requirements.lock and their like
[group('build')]
[working-directory('.')]
lock: development
    uv pip compile pyproject.toml --universal --python-version 3.11 --upgrade --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --custom-compile-command './just lock' --output-file requirements.lock
    uv pip compile pyproject.toml --extra cluster --constraint requirements.lock --universal --python-version 3.11 \
        --upgrade --generate-hashes --quiet --no-emit-index-url --no-emit-find-links \
        --custom-compile-command './just lock' --output-file requirements-cluster.lock
    uv pip compile --group dev --constraint requirements-cluster.lock --universal --python-version 3.11 --upgrade \
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

# Remove the tools' files from the checkout; results, .venv and the cache folder stay
[group('build')]
[working-directory('.')]
clean:
    rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
    find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
