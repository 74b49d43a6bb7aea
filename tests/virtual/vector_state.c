// SPDX-License-Identifier: Apache-2.0
// Does the state of AVX registers survive what takes a thread off the processor?
//
// Each thread puts a pattern of its own into all sixteen ymm registers, makes one step that enters the kernel, and
// compares the registers, without a function call in between. Steps: yield to the other threads, a page fault, a signal
// whose handler destroys the registers, fork with both sides comparing. Exit status: 0 kept, 1 lost, 77 no AVX here.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 2
#define ROUNDS 2000
#define FORK_EVERY 50
#define BYTES (16 * 32)
#define PAGE 4096

struct worker {
	pthread_t thread;
	uint64_t state;     // of its generator of patterns
	long checks, lost;
	volatile char *page;
	uint8_t wanted[BYTES], found[BYTES];
};

static long handled;

#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "vmovdqu " #n "*32(%[wanted]), %%ymm" #n "\n\t"
#define STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%[found])\n\t"
#define TOUCHED(n) "ymm" #n,

// Load all registers, make the system call, touch the page, store all registers: what the call returned.
__attribute__((target("avx"))) static long step(struct worker *w, long call, long a, long b, long c)
{
	long result = call;
	register long third asm("rdx") = c;

	asm volatile(ALL(LOAD)
		     "syscall\n\t"
		     "movb $1, (%[page])\n\t"
		     ALL(STORE)
		     : "+a"(result), "+r"(third)
		     : "D"(a), "S"(b), [wanted] "r"(w->wanted), [found] "r"(w->found), [page] "r"(w->page)
		     : ALL(TOUCHED) "rcx", "r11", "memory");
	return result;
}

__attribute__((target("avx"))) static void destroy_registers(int number)
{
	(void)number;
	asm volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0\n\tvinsertf128 $1, %%xmm0, %%ymm0, %%ymm0\n\t"
		     "vmovaps %%ymm0, %%ymm7\n\tvmovaps %%ymm0, %%ymm15" ::: "ymm0", "ymm7", "ymm15");
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int intact(struct worker *w)
{
	w->checks++;
	if (!memcmp(w->wanted, w->found, BYTES))
		return 1;
	w->lost++;
	return 0;
}

static void fresh(struct worker *w)
{
	for (int i = 0; i < BYTES; i += 8) {
		uint64_t value = next(&w->state);
		memcpy(w->wanted + i, &value, 8);
	}
	memset(w->found, 0, BYTES);
	madvise((void *)w->page, PAGE, MADV_DONTNEED); // the next touch is a page fault
}

static void forked(struct worker *w)
{
	int status = 1;
	long child = step(w, SYS_fork, 0, 0, 0);
	int kept = intact(w);

	if (!child)
		_exit(!kept);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		w->lost++;
	w->checks++;
}

static void *work(void *argument)
{
	struct worker *w = argument;

	for (int round = 0; round < ROUNDS; round++) {
		fresh(w);
		step(w, SYS_sched_yield, 0, 0, 0);
		intact(w);
		fresh(w);
		step(w, SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
		intact(w);
		if (round % FORK_EVERY == 0) {
			fresh(w);
			forked(w);
		}
	}
	return NULL;
}

int main(void)
{
	static struct worker workers[THREADS];
	struct sigaction action = {.sa_handler = destroy_registers};
	long checks = 0, lost = 0;

	if (!__builtin_cpu_supports("avx"))
		return 77;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < THREADS; i++) {
		workers[i].state = 0x9e3779b97f4a7c15u + i;
		workers[i].page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 2;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		checks += workers[i].checks;
		lost += workers[i].lost;
	}
	printf("%ld %ld %ld\n", checks, lost, handled);
	return lost != 0;
}
