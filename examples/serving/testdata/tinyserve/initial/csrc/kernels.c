// The arithmetic of the model: one step of a small recurrent network on integers, and the choice of the next token.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

#define HIDDEN 128
#define VOCAB 1536
#define TOP 8

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// What a model's name stands for. Matrices are kept by rows: the weights of one input lie side by side.
typedef struct {
    int32_t recurrent[HIDDEN][HIDDEN];
    int32_t output[HIDDEN][VOCAB];
    int32_t embedding[VOCAB][HIDDEN];
} Model;

static void fill(int32_t *weights, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++)
        weights[i] = (int32_t)(mix(seed + i) % 255) - 127;
}

static void destroy(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, "model")); }

static PyObject *load(PyObject *self, PyObject *args) {
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "K", &seed))
        return NULL;
    Model *m = malloc(sizeof *m);
    if (!m)
        return PyErr_NoMemory();
    fill(&m->recurrent[0][0], HIDDEN * HIDDEN, mix(seed));
    fill(&m->output[0][0], HIDDEN * VOCAB, mix(seed + 1));
    fill(&m->embedding[0][0], VOCAB * HIDDEN, mix(seed + 2));
    return PyCapsule_New(m, "model", destroy);
}

// absorb moves the state on by one token.
static void absorb(const Model *m, int32_t *state, int token) {
    int32_t next[HIDDEN];
    for (int j = 0; j < HIDDEN; j++) {
        int32_t sum = 0;
        for (int i = 0; i < HIDDEN; i++)
            sum += m->recurrent[i][j] * state[i];
        next[j] = (sum >> 7) % 512 + m->embedding[token][j];
    }
    for (int j = 0; j < HIDDEN; j++)
        state[j] = next[j];
}

// score rates every token of the vocabulary.
static void score(const Model *m, const int32_t *state, int32_t *scores) {
    for (int v = 0; v < VOCAB; v++) {
        int32_t sum = 0;
        for (int i = 0; i < HIDDEN; i++)
            sum += m->output[i][v] * state[i];
        scores[v] = sum;
    }
}

typedef struct {
    int32_t score;
    int token;
} Choice;

static int better(const void *a, const void *b) {
    const Choice *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->token - y->token;
}

// choose takes one of the TOP best tokens; which one, the draw says.
static int choose(const int32_t *scores, uint64_t draw) {
    Choice all[VOCAB];
    for (int v = 0; v < VOCAB; v++)
        all[v] = (Choice){scores[v], v};
    qsort(all, VOCAB, sizeof all[0], better);
    return all[mix(draw) % TOP].token;
}

static Model *model_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, "model"); }

static int32_t *state_of(PyObject *object) {
    if (!PyByteArray_Check(object) || PyByteArray_Size(object) != HIDDEN * sizeof(int32_t)) {
        PyErr_SetString(PyExc_ValueError, "a state is a bytearray of STATE_SIZE bytes");
        return NULL;
    }
    return (int32_t *)PyByteArray_AsString(object);
}

// prefill(model, state, tokens): the state after the prompt.
static PyObject *prefill(PyObject *self, PyObject *args) {
    PyObject *capsule, *object, *tokens;
    if (!PyArg_ParseTuple(args, "OOO!", &capsule, &object, &PyList_Type, &tokens))
        return NULL;
    Model *m = model_of(capsule);
    int32_t *state = state_of(object);
    if (!m || !state)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tokens); i++) {
        long token = PyLong_AsLong(PyList_GET_ITEM(tokens, i));
        if (token == -1 && PyErr_Occurred())
            return NULL;
        if (token < 0 || token >= VOCAB)
            return PyErr_Format(PyExc_ValueError, "token %ld is not in the vocabulary", token);
        absorb(m, state, (int)token);
    }
    Py_RETURN_NONE;
}

// step(model, state, draw): the next token. The state has moved on by it.
static PyObject *step(PyObject *self, PyObject *args) {
    PyObject *capsule, *object;
    unsigned long long draw;
    if (!PyArg_ParseTuple(args, "OOK", &capsule, &object, &draw))
        return NULL;
    Model *m = model_of(capsule);
    int32_t *state = state_of(object);
    if (!m || !state)
        return NULL;
    int32_t scores[VOCAB];
    score(m, state, scores);
    int token = choose(scores, draw);
    absorb(m, state, token);
    return PyLong_FromLong(token);
}

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS, "load(seed): the weights that a seed stands for"},
    {"prefill", prefill, METH_VARARGS, "prefill(model, state, tokens)"},
    {"step", step, METH_VARARGS, "step(model, state, draw): the next token"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernels", NULL, -1, methods};

PyMODINIT_FUNC PyInit__kernels(void) {
    PyObject *m = PyModule_Create(&module);
    if (m) {
        PyModule_AddIntConstant(m, "VOCAB", VOCAB);
        PyModule_AddIntConstant(m, "STATE_SIZE", HIDDEN * sizeof(int32_t));
    }
    return m;
}
