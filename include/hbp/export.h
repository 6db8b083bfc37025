/* Visibility and linkage of the public functions. */
#ifndef HBP_EXPORT_H
#define HBP_EXPORT_H

#if defined(HBP_STATIC)
#define HBP_API
#elif defined(_WIN32) && defined(HBP_BUILD)
#define HBP_API __declspec(dllexport)
#elif defined(_WIN32)
#define HBP_API __declspec(dllimport)
#elif defined(__GNUC__)
#define HBP_API __attribute__((visibility("default")))
#else
#define HBP_API
#endif

#ifdef __cplusplus
#define HBP_BEGIN_DECLS extern "C" {
#define HBP_END_DECLS   }
#else
#define HBP_BEGIN_DECLS
#define HBP_END_DECLS
#endif

#endif
