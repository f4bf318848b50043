// Makes code at run time, in each of the ways that programs have for it, runs it often enough to be worth compiling,
// changes it, and prints what it computed.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint64_t (*function)(uint64_t);

enum { SIZE = 4096, CALLS = 20000 };

// mov rax, rdi; mov ecx, rounds; 1: imul rax, rax, factor; add rax, 1; dec ecx; jnz 1b; ret
static size_t emit(uint8_t *at, uint32_t rounds, uint32_t factor)
{
	uint8_t code[] = {0x48, 0x89, 0xf8, 0xb9, 0, 0, 0, 0, 0x48, 0x69, 0xc0, 0, 0, 0, 0,
			  0x48, 0x83, 0xc0, 1, 0xff, 0xc9, 0x75, 0xf1, 0xc3};
	memcpy(code + 4, &rounds, 4);
	memcpy(code + 11, &factor, 4);
	memcpy(at, code, sizeof code);
	return sizeof code;
}

static uint64_t run(const uint8_t *at, uint64_t seed)
{
	uint64_t sum = seed;
	for (int i = 0; i < CALLS; i++)
		sum = ((function)(uintptr_t)at)(sum ^ i);
	return sum;
}

static uint8_t *map(int protection)
{
	return mmap(NULL, SIZE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Writable or executable, one after the other.
static void protected(void)
{
	uint8_t *page = map(PROT_READ | PROT_WRITE);
	for (uint32_t version = 3; version < 9; version++) {
		mprotect(page, SIZE, PROT_READ | PROT_WRITE);
		emit(page, 5, version / 2);
		mprotect(page, SIZE, PROT_READ | PROT_EXEC);
		printf("protected %u: %lx\n", version, run(page, version));
		usleep(100000);
		printf("protected %u: %lx\n", version, run(page, version));
	}
	munmap(page, SIZE);
}

// Both at a time, written by stores.
static void patched(void)
{
	uint8_t *page = map(PROT_READ | PROT_WRITE | PROT_EXEC);
	emit(page, 4, 7);
	uint64_t sum = 1;
	for (uint32_t version = 1; version < 12; version++) {
		sum = run(page, sum);
		usleep(60000);
		sum = run(page, sum);
		memcpy(page + 11, &version, 4);
		printf("patched %u: %lx\n", version, ((function)(uintptr_t)page)(sum));
	}
	munmap(page, SIZE);
}

// Both at a time, written by the kernel.
static void received(void)
{
	uint8_t *page = map(PROT_READ | PROT_WRITE | PROT_EXEC), code[64];
	int ends[2];
	if (pipe(ends))
		return;
	for (uint32_t version = 2; version < 6; version++) {
		size_t size = emit(code, 3, version * version);
		if (write(ends[1], code, size) != (ssize_t)size || read(ends[0], page, size) != (ssize_t)size)
			perror("pipe");
		uint64_t sum = run(page, version);
		usleep(100000);
		printf("received %u: %lx\n", version, run(page, sum));
	}
	munmap(page, SIZE);
}

// Changed at one address by mapping something else there.
static void replaced(void)
{
	uint8_t *page = map(PROT_READ | PROT_WRITE | PROT_EXEC);
	for (uint32_t version = 1; version < 5; version++) {
		emit(page, 6, 2 * version + 1);
		uint64_t sum = run(page, 1);
		usleep(100000);
		printf("replaced %u: %lx\n", version, run(page, sum));
		mmap(page, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	munmap(page, SIZE);
}

// Run by several threads at a time.
static void *thread(void *page)
{
	uint64_t sum = 1;
	for (int i = 0; i < 20; i++) {
		sum = run(page, sum);
		usleep(5000);
	}
	return (void *)(uintptr_t)sum;
}

static void shared(void)
{
	uint8_t *page = map(PROT_READ | PROT_WRITE | PROT_EXEC);
	emit(page, 8, 11);
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread, page);
	for (int i = 0; i < 3; i++) {
		void *sum;
		pthread_join(threads[i], &sum);
		printf("shared: %p\n", sum);
	}
}

// A return into code that its callee has changed.
static void changed_under_way(void)
{
	uint8_t *page = map(PROT_READ | PROT_WRITE | PROT_EXEC);
	// push rbx; mov rbx, rdi; call [rdi]; mov eax, 1; pop rbx; ret
	uint8_t code[] = {0x53, 0x48, 0x89, 0xfb, 0xff, 0x17, 0xb8, 1, 0, 0, 0, 0x5b, 0xc3};
	memcpy(page, code, sizeof code);
	// inc byte [rdi + 8], which is where `page` is, then the place of the constant
	uint8_t *change = map(PROT_READ | PROT_WRITE | PROT_EXEC);
	uint8_t inc[] = {0x48, 0x8b, 0x47, 8, 0xfe, 0x00, 0xc3};
	memcpy(change, inc, sizeof inc);
	uint8_t quiet[] = {0xc3};
	uint8_t *nothing = change + 64;
	memcpy(nothing, quiet, sizeof quiet);
	struct { void *callee; uint8_t *constant; } argument = {nothing, page + 7};
	uint64_t sum = 0;
	for (int round = 0; round < 5; round++) {
		argument.callee = nothing;
		for (int i = 0; i < CALLS; i++)
			sum += ((uint64_t (*)(void *))(uintptr_t)page)(&argument);
		usleep(80000);
		argument.callee = change;
		printf("under way %d: %lu\n", round, ((uint64_t (*)(void *))(uintptr_t)page)(&argument));
	}
	printf("under way: %lu\n", sum);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	protected();
	patched();
	received();
	replaced();
	shared();
	changed_under_way();
	return 0;
}
