# SPDX-License-Identifier: Apache-2.0
"""The commands about what runs are made on: kernels, images and disks in the cache folder, and labs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from longfat.catalog.kernels import DEFAULT_KERNEL, require_kernel
from longfat.cli_options import MACHINES, TESTBED, Grouped, LabEnvironment, LabName, OfLab, Yes, outcome
from longfat.verbs.say import say_place

machines = typer.Typer()
build = typer.Typer(
    cls=Grouped,
    help="Build the kernel, the image, a container image or a disk into the cache folder.",
    no_args_is_help=True,
)
machines.add_typer(build, name="build", rich_help_panel=TESTBED)
lab = typer.Typer(
    cls=Grouped, help="Make, prepare and destroy the machines of a lab (docs/infrastructure.md).", no_args_is_help=True
)
machines.add_typer(lab, name="lab", rich_help_panel=MACHINES)


@build.command()
def kernel(
    target: Annotated[
        Literal["um", "x86-64"], typer.Option(help="the guest's kernel, or a Debian package for x86-64 machines")
    ] = "um",
    name: Annotated[str, typer.Option("--kernel", help="name of a folder in kernels/")] = DEFAULT_KERNEL,
) -> None:
    """Build a kernel, unless it is in the cache folder."""
    with outcome() as console:
        from longfat.builds.kernel import build_kernel
        from longfat.builds.kernel_targets import TARGETS

        require_kernel(name)
        say_place(console, "kernel", build_kernel(TARGETS[target], name, say=console.print).path)


@build.command()
def image(
    verify: Annotated[bool, typer.Option(help="compare every byte, including those of the composed roots")] = False,
) -> None:
    """Build the userland image, unless it is in the cache folder."""
    with outcome() as console:
        from longfat.builds.image import build_image
        from longfat.builds.roots import remove_damaged_roots

        built = build_image(verify=verify, say=console.print)
        if verify:
            remove_damaged_roots(built, console.print)
        say_place(console, "image", built.path)


@build.command()
def disk() -> None:
    """Build the disk of virtual machines, unless it is in the cache folder; needs root."""
    with outcome() as console:
        from longfat.builds.disk import build_disk

        say_place(console, "disk", build_disk(say=console.print))


@build.command()
def oci() -> None:
    """Build the whole testbed as a container image, unless it is in the cache folder."""
    with outcome() as console:
        from longfat.verbs.oci import build

        say_place(console, "container image", build(console))


@build.command("all")
def build_both() -> None:
    """Build the kernel and the image."""
    kernel()
    image()


@lab.command("up")
def lab_up(
    environment: LabEnvironment,
    name: LabName = None,
    yes: Yes = False,
    hourly_price: Annotated[float | None, typer.Option(min=0, help="cost of an hour of the whole lab")] = None,
    currency: Annotated[str, typer.Option(help="currency of that price")] = "USD",
) -> None:
    """Show the planned machines and their cost, ask, make them, and write the lab's inventory."""
    with outcome() as console:
        from longfat.testbed.provision.changes import Price
        from longfat.verbs import lab as verbs

        verbs.up(environment, name, Price(hourly_price, currency), console, yes=yes)


@lab.command("provision")
def lab_provision(
    environment: OfLab = None,
    options: Annotated[list[str] | None, typer.Argument(help="options of ansible-playbook, after --")] = None,
    name: LabName = None,
) -> None:
    """Prepare the machines of a lab with the roles of infra/ansible."""
    with outcome() as console:
        from longfat.verbs import lab as verbs

        given = [word for word in (environment, *(options or ())) if word]
        first = given.pop(0) if given and not given[0].startswith("-") else None
        verbs.provision(first, name, given, console)


@lab.command("down")
def lab_down(environment: OfLab = None, name: LabName = None, yes: Yes = False) -> None:
    """Show the machines to destroy, ask, destroy them, and remove the files that were made in the lab's folder."""
    with outcome() as console:
        from longfat.verbs import lab as verbs

        verbs.down(environment, name, console, yes=yes)


@lab.command("list")
def lab_list() -> None:
    """List the labs of this account, and how long each has left."""
    from longfat.verbs import lab as verbs

    raise typer.Exit(verbs.sweep(["--list"]))


@lab.command("sweep")
def lab_sweep(yes: Yes = False) -> None:
    """List the labs of this account, and destroy those past their expiry, after a confirmation for each."""
    from longfat.verbs import lab as verbs

    raise typer.Exit(verbs.sweep(["--yes"] if yes else []))
