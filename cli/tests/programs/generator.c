/* Makes a function at run time, calls it for a while, rests, and makes it anew; prints what it computed. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	/* mov rax, rdi; mov ecx, 1000; 1: imul rax, rax, factor; add rax, 1; dec ecx; jnz 1b; ret */
	uint8_t code[] = {0x48, 0x89, 0xf8, 0xb9, 0xe8, 3, 0, 0, 0x48, 0x69, 0xc0, 0, 0, 0, 0,
			  0x48, 0x83, 0xc0, 1, 0xff, 0xc9, 0x75, 0xf1, 0xc3};
	int rights = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *page = mmap(NULL, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t sum = 1;
	for (uint32_t version = 3; version < 123; version += 2) {
		memcpy(code + 11, &version, 4);
		memcpy(page, code, sizeof code);
		for (int i = 0; i < 2000; i++)
			sum = ((uint64_t (*)(uint64_t))(uintptr_t)page)(sum ^ i);
		printf("%u %llx\n", version, (unsigned long long)sum);
		fflush(stdout);
		usleep(100000);
	}
	return 0;
}
