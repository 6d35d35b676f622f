/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates and keys for tests: two authorities, and two clients of the first. Valid for a
 * century, trusted by nobody.
 */
#ifndef TESTS_UNIT_KUBE_TEST_PEM_H
#define TESTS_UNIT_KUBE_TEST_PEM_H

#define TEST_CA_1                                                        \
    "-----BEGIN CERTIFICATE-----\n"                                      \
    "MIIBjjCCATOgAwIBAgIUe6oeAT+fEL0mzNpmZtkg2M+gsDUwCgYIKoZIzj0EAwIw\n" \
    "GzEZMBcGA1UEAwwQc2xpcHdheSB0ZXN0IGNhMTAgFw0yNjExMjAxMjE0MzJaGA8y\n" \
    "MTI2MTAyNzEyMTQzMlowGzEZMBcGA1UEAwwQc2xpcHdheSB0ZXN0IGNhMTBZMBMG\n" \
    "ByqGSM49AgEGCCqGSM49AwEHA0IABOgN5fGnfnvFD0XJaJg35DNOVKv8vbx+OsaE\n" \
    "Mu70nZ+rQh8QU7K5mJ6LVmcm+RnK13AUxiOdeyf1XfuDcttHDayjUzBRMB0GA1Ud\n" \
    "DgQWBBQ749NaSdHfHI47lKE9IYy4VAeP3DAfBgNVHSMEGDAWgBQ749NaSdHfHI47\n" \
    "lKE9IYy4VAeP3DAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCC\n" \
    "8TnZuJN6aYSXhkB2yKHksFY8SdEkbD9PxS1h1V6y6gIhAIpY+8+3SgivggzLk60w\n" \
    "c7PgXLyoFCVUwL08S0sDTCNl\n"                                         \
    "-----END CERTIFICATE-----\n"

#define TEST_CA_2                                                        \
    "-----BEGIN CERTIFICATE-----\n"                                      \
    "MIIBjDCCATOgAwIBAgIUHf1tHiRnpO6bf22I0OtShX5MkiswCgYIKoZIzj0EAwIw\n" \
    "GzEZMBcGA1UEAwwQc2xpcHdheSB0ZXN0IGNhMjAgFw0yNjExMjAxMjE0MzJaGA8y\n" \
    "MTI2MTAyNzEyMTQzMlowGzEZMBcGA1UEAwwQc2xpcHdheSB0ZXN0IGNhMjBZMBMG\n" \
    "ByqGSM49AgEGCCqGSM49AwEHA0IABAFo7t1YXTuoWZye57LDBgVr8eUKDCB/hX0f\n" \
    "JCjUCJ1t4XHk0Hfz130egPcMj+MqjNjG7DI8DMR51axy6EHR60GjUzBRMB0GA1Ud\n" \
    "DgQWBBSLlbd30zdgxz2vvOUMaOE3EzpSLTAfBgNVHSMEGDAWgBSLlbd30zdgxz2v\n" \
    "vOUMaOE3EzpSLTAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIBdj\n" \
    "eJkibCY7BruqFsUg7fjSsbsJP+YvJXkPcDXTrC6eAiBc9IW6UzgRjzeyre/UXAJA\n" \
    "reZ5xY852w73/f193ZriTA==\n"                                         \
    "-----END CERTIFICATE-----\n"

#define TEST_CLIENT_1                                                    \
    "-----BEGIN CERTIFICATE-----\n"                                      \
    "MIIBKDCB0AIUeoVd+cwxdn7ll1UJj1yKIF5E6N4wCgYIKoZIzj0EAwIwGzEZMBcG\n" \
    "A1UEAwwQc2xpcHdheSB0ZXN0IGNhMTAgFw0yNjExMjAxMjE0MzJaGA8yMTI2MTAy\n" \
    "NzEyMTQzMlowEjEQMA4GA1UEAwwHY2xpZW50MTBZMBMGByqGSM49AgEGCCqGSM49\n" \
    "AwEHA0IABKQl/Y9jqgeb5/RQiSSzLx/oyj8/S5gOxGWDfgxJn+L1ys0g5axv37Eq\n" \
    "xeErBh6dfC/BYYSzwkU4mA7KDVbfaYQwCgYIKoZIzj0EAwIDRwAwRAIgECX0GcL5\n" \
    "Q+X2/oWSMRJ9uWVXgLe0n621AZF+6CdGVXUCICE+JggPPgyPh/1v0H1Qkym7uOwW\n" \
    "HrFfMQusISyLUQRx\n"                                                 \
    "-----END CERTIFICATE-----\n"

#define TEST_CLIENT_1_KEY                                                \
    "-----BEGIN PRIVATE KEY-----\n"                                      \
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEzJu0J0VMW89V0NP\n" \
    "QOPW9CfENO2tPlwhqkSAHOqlfsOhRANCAASkJf2PY6oHm+f0UIkksy8f6Mo/P0uY\n" \
    "DsRlg34MSZ/i9crNIOWsb9+xKsXhKwYenXwvwWGEs8JFOJgOyg1W32mE\n"         \
    "-----END PRIVATE KEY-----\n"

#define TEST_CLIENT_2                                                    \
    "-----BEGIN CERTIFICATE-----\n"                                      \
    "MIIBKTCB0AIUeoVd+cwxdn7ll1UJj1yKIF5E6N8wCgYIKoZIzj0EAwIwGzEZMBcG\n" \
    "A1UEAwwQc2xpcHdheSB0ZXN0IGNhMTAgFw0yNjExMjAxMjE0MzJaGA8yMTI2MTAy\n" \
    "NzEyMTQzMlowEjEQMA4GA1UEAwwHY2xpZW50MjBZMBMGByqGSM49AgEGCCqGSM49\n" \
    "AwEHA0IABNhl3nCQSKIta33D2Xzn9wYW7JSWgRQ9ycWzWYRyQRxCfnafxoWKxc0T\n" \
    "6diSuddSoGPHX32TeyJ633e04xVEREswCgYIKoZIzj0EAwIDSAAwRQIhAI7798PX\n" \
    "UQIGqQCGyJgpZxbq/jXWaUcinT/jzIuVrgL0AiAibF+lbt7ROvBle+Yr8yr4JPsq\n" \
    "/JQ+6BvV9qjpbaPBfg==\n"                                             \
    "-----END CERTIFICATE-----\n"

#define TEST_CLIENT_2_KEY                                                \
    "-----BEGIN PRIVATE KEY-----\n"                                      \
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/x8Y+ALfNReecGrw\n" \
    "WFPoGgb4+9TA2Z9+GkTiDaH7T96hRANCAATYZd5wkEiiLWt9w9l85/cGFuyUloEU\n" \
    "PcnFs1mEckEcQn52n8aFisXNE+nYkrnXUqBjx199k3siet93tOMVRERL\n"         \
    "-----END PRIVATE KEY-----\n"

#endif
