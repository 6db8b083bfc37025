/* As much of pybind11 as lets a module's functions be compiled without Python: the module itself is never
 * made. */
#ifndef BENCH_PYBIND11_H
#define BENCH_PYBIND11_H

namespace pybind11
{
struct arg {
    explicit arg(const char *)
    {
    }
    template <class T> arg operator=(T) const
    {
        return *this;
    }
};
} // namespace pybind11

#define PYBIND11_MODULE(name, m) template <class M> static void module_##name(M &m)

#endif
