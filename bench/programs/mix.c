// Integer work as small controllers do it, in equal parts: a linked list sorted and searched, a 16-bit matrix,
// numbers scanned by a state machine, and a CRC over the results.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 500, SIZE = 24, TEXT = 1200, ROUNDS = 60000 };

static uint16_t crc16(uint16_t crc, uint32_t value) {
    for (int bit = 0; bit < 32; bit++, value >>= 1) {
        uint16_t carry = (crc ^ value) & 1;
        crc >>= 1;
        if (carry) crc ^= 0xa001;
    }
    return crc;
}

// ---- list ----

struct node {
    struct node *next;
    int16_t key, value;
};

typedef int order(const struct node *, const struct node *);

static int by_key(const struct node *a, const struct node *b) { return a->key - b->key; }
static int by_value(const struct node *a, const struct node *b) { return a->value - b->value; }

static struct node *merge(struct node *a, struct node *b, order *cmp) {
    struct node head, *tail = &head;
    while (a && b) {
        struct node **least = cmp(a, b) <= 0 ? &a : &b;
        tail = tail->next = *least;
        *least = (*least)->next;
    }
    tail->next = a ? a : b;
    return head.next;
}

static struct node *sort(struct node *list, int count, order *cmp) {
    if (count < 2) {
        if (list) list->next = NULL;
        return list;
    }
    struct node *right = list;
    for (int i = 0; i < count / 2; i++) right = right->next;
    struct node *left = sort(list, count / 2, cmp);
    return merge(left, sort(right, count - count / 2, cmp), cmp);
}

static uint16_t list_work(struct node *nodes, int seed, uint16_t crc) {
    for (int i = 0; i < NODES; i++) {
        nodes[i].next = nodes + i + 1;
        nodes[i].key = (int16_t)((i * 7919 + seed) & 0x3fff);
        nodes[i].value = (int16_t)((i * 104729 ^ seed) & 0x0fff);
    }
    nodes[NODES - 1].next = NULL;
    struct node *list = sort(nodes, NODES, seed & 1 ? by_key : by_value);
    for (int wanted = 0; wanted < 8; wanted++) {
        int steps = 0;
        for (struct node *n = list; n && n->key % 64 != wanted; n = n->next) steps++;
        crc = crc16(crc, (uint32_t)steps);
    }
    return crc;
}

// ---- matrix ----

static uint16_t matrix_work(int seed, uint16_t crc) {
    static int16_t a[SIZE][SIZE], b[SIZE][SIZE];
    static int32_t c[SIZE][SIZE];
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            a[i][j] = (int16_t)(seed + i * j);
            b[i][j] = (int16_t)(seed ^ (i + 3 * j));
        }
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            int32_t sum = 0;
            for (int k = 0; k < SIZE; k++) sum += a[i][k] * (b[k][j] >> 2);
            c[i][j] = sum;
        }
    for (int i = 0; i < SIZE; i++) crc = crc16(crc, (uint32_t)c[i][(i * 5) % SIZE]);
    return crc;
}

// ---- state machine ----

enum state { START, SIGN, INTEGER, POINT, FRACTION, EXPONENT, POWER, INVALID, STATES };

static enum state next_state(enum state state, char c) {
    int digit = c >= '0' && c <= '9';
    switch (state) {
    case START: return digit ? INTEGER : c == '+' || c == '-' ? SIGN : c == '.' ? POINT : INVALID;
    case SIGN: return digit ? INTEGER : c == '.' ? POINT : INVALID;
    case INTEGER: return digit ? INTEGER : c == '.' ? FRACTION : c == 'e' ? EXPONENT : INVALID;
    case POINT: return digit ? FRACTION : INVALID;
    case FRACTION: return digit ? FRACTION : c == 'e' ? EXPONENT : INVALID;
    case EXPONENT: return digit || c == '-' ? POWER : INVALID;
    case POWER: return digit ? POWER : INVALID;
    default: return INVALID;
    }
}

static uint16_t scan_work(const char *text, uint16_t crc) {
    uint32_t ends[STATES] = {0}, visits[STATES] = {0};
    enum state state = START;
    for (const char *p = text; *p; p++) {
        if (*p == ',') {
            ends[state]++;
            state = START;
        } else if (state != INVALID) {
            state = next_state(state, *p);
            visits[state]++;
        }
    }
    for (int s = 0; s < STATES; s++) crc = crc16(crc16(crc, ends[s]), visits[s]);
    return crc;
}

static void write_numbers(char *text) {
    static const char *const numbers[] = {"5012", "-1.5", "+0.25e-3", "7e", ".5", "12a", "3.14159", "-", "1e9"};
    char *end = text + TEXT - 16;
    for (unsigned i = 0; text < end; i = i * 5 + 3) text += sprintf(text, "%s,", numbers[i % 9]);
}

int main(void) {
    struct node *nodes = malloc(NODES * sizeof *nodes);
    static char text[TEXT];
    write_numbers(text);
    uint16_t crc = 0;
    for (int round = 0; round < ROUNDS; round++) {
        crc = list_work(nodes, round, crc);
        crc = matrix_work(round, crc);
        text[round % 64] = "0123456789+-.e,x"[round % 16];
        for (int i = 0; i < 4; i++) crc = scan_work(text, crc);
    }
    free(nodes);
    printf("%04x\n", crc);
}
