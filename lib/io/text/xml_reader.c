#include "io/text/xml_reader.h"

#include <expat.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_DEPTH    64
#define MOST_ELEMENTS 1000000

hbp_status hbp__xml_fail(const hbp__xml *xml, hbp_status status, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return hbp__fail(xml->context, status, "%s, line %lld: %s", xml->what,
                     (long long)XML_GetCurrentLineNumber(xml->parser), text);
}

const char *hbp__xml_get(const char **attributes, const char *name)
{
    for (; attributes[0]; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return NULL;
}

static void end_by(hbp__xml *xml, hbp_status status)
{
    if (status < 0 && xml->status >= 0) {
        xml->status = status;
        XML_StopParser(xml->parser, XML_FALSE);
    }
}

static hbp_status open_element(hbp__xml *xml, const char *name, const char **attributes)
{
    if (xml->depth == 1 && strcmp(name, xml->root) != 0)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "the outermost element is '%.32s', not '%s'", name,
                             xml->root);
    if (xml->depth > MOST_DEPTH)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "elements nest deeper than %d", MOST_DEPTH);
    if (++xml->elements > MOST_ELEMENTS)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "there are more than %d elements", MOST_ELEMENTS);
    return xml->open(xml, name, attributes);
}

static void XMLCALL on_open(void *user, const XML_Char *name, const XML_Char **attributes)
{
    hbp__xml *xml = user;
    if (xml->status < 0) /* expat may deliver a little more after it was stopped */
        return;
    xml->depth++;
    end_by(xml, open_element(xml, name, attributes));
}

static void XMLCALL on_close(void *user, const XML_Char *name)
{
    hbp__xml *xml = user;
    if (xml->status < 0)
        return;
    if (xml->close)
        end_by(xml, xml->close(xml, name));
    xml->depth--;
}

/* hwloc writes a DOCTYPE that names a file, which is never opened. Entities can only be declared in an
 * internal subset: without one there is nothing to expand. */
static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int has_internal_subset)
{
    hbp__xml *xml = user;
    (void)name;
    (void)system_id;
    (void)public_id;
    if (has_internal_subset)
        end_by(xml, hbp__xml_fail(xml, HBP_E_FORMAT, "the DOCTYPE declares something of its own"));
}

static hbp_status parse_document(hbp__xml *xml, const char *data, int64_t bytes)
{
    XML_SetUserData(xml->parser, xml);
    XML_SetElementHandler(xml->parser, on_open, on_close);
    XML_SetStartDoctypeDeclHandler(xml->parser, on_doctype);
    /* In one piece: expat scans a long token again for every piece it comes in. */
    enum XML_Status code = XML_Parse(xml->parser, data, (int)bytes, 1);
    if (xml->status < 0)
        return xml->status;
    if (code == XML_STATUS_OK)
        return HBP_OK;
    enum XML_Error error = XML_GetErrorCode(xml->parser);
    if (error == XML_ERROR_NO_MEMORY)
        return hbp__fail_memory(xml->context, "XML");
    return hbp__xml_fail(xml, HBP_E_FORMAT, "%s", XML_ErrorString(error));
}

hbp_status hbp__xml_read(hbp__xml *xml, const char *data, int64_t bytes)
{
    if (bytes > HBP__XML_BYTES)
        return hbp__fail(xml->context, HBP_E_FORMAT, "%s has %lld bytes; at most %lld are read", xml->what,
                         (long long)bytes, (long long)HBP__XML_BYTES);
    xml->depth = 0;
    xml->elements = 0;
    xml->status = HBP_OK;
    /* expat's memory hooks take no user pointer, so that the context's allocator cannot serve it. */
    xml->parser = XML_ParserCreate(NULL);
    if (!xml->parser)
        return hbp__fail_memory(xml->context, "XML");
    hbp_status status = parse_document(xml, data, bytes);
    XML_ParserFree(xml->parser);
    xml->parser = NULL;
    return status;
}
