/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a credential plugin prints: any bytes are credentials that can be sent, or are refused with
 * words that do not quote them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "fuzz.h"
#include "kube/exec_credential.h"
#include "kube/token.h"

#define CHECK(condition) ((condition) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct sw_exec_credential credential;
    struct sw_error error = {0};
    char *text = sw_strndup((const char *)bytes, len); /* as the output of a child ends */
    int rc = sw_exec_credential_parse("client.authentication.k8s.io/v1", text, strlen(text),
                                      &credential, &error);
    if (rc) {
        CHECK(rc == SW_E_SYNTAX && error.code == rc && error.text[0]);
    } else {
        CHECK(credential.token || credential.key_pem);
        CHECK(!credential.key_pem == !credential.certificate_pem);
        for (const char *c = credential.token; c && *c; c++) {
            CHECK(*c > ' ' && *c < 0x7f);
        }
        sw_free(sw_token_subject(credential.token));
        sw_exec_credential_done(&credential);
        CHECK(!credential.token && !credential.key_pem);
    }
    sw_free(text);
    return 0;
}
