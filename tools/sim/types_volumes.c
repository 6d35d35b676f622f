/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of volumes. Sources of one cloud or storage product are taken as they come. */
#include "types.h"

static const struct sw_sim_field key_to_path[] = {
    {"key", ONE, TEXT, KEEP},
    {"mode", ONE, INT, PTR},
    {"path", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field config_map_volume_source[] = {
    {"defaultMode", ONE, INT, PTR},
    {"items", LIST, STRUCT, 0, .fields = key_to_path},
    {"name", ONE, TEXT},
    {"optional", ONE, BOOL, PTR},
    {0},
};

static const struct sw_sim_field downward_api_volume_file[] = {
    {"fieldRef", ONE, STRUCT, PTR, .fields = sw_sim_fields_object_field_selector},
    {"mode", ONE, INT, PTR},
    {"path", ONE, TEXT, KEEP},
    {"resourceFieldRef", ONE, STRUCT, PTR, .fields = sw_sim_fields_resource_field_selector},
    {0},
};

static const struct sw_sim_field downward_api_volume_source[] = {
    {"defaultMode", ONE, INT, PTR},
    {"items", LIST, STRUCT, 0, .fields = downward_api_volume_file},
    {0},
};

static const struct sw_sim_field empty_dir_volume_source[] = {
    {"medium", ONE, TEXT},
    {"sizeLimit", ONE, QUANTITY, PTR},
    {0},
};

static const struct sw_sim_field git_repo_volume_source[] = {
    {"directory", ONE, TEXT},
    {"repository", ONE, TEXT, KEEP},
    {"revision", ONE, TEXT},
    {0},
};

static const struct sw_sim_field host_path_volume_source[] = {
    {"path", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, PTR},
    {0},
};

static const struct sw_sim_field nfs_volume_source[] = {
    {"path", ONE, TEXT, KEEP},
    {"readOnly", ONE, BOOL},
    {"server", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field persistent_volume_claim_volume_source[] = {
    {"claimName", ONE, TEXT, KEEP},
    {"readOnly", ONE, BOOL},
    {0},
};

static const struct sw_sim_field config_map_projection[] = {
    {"items", LIST, STRUCT, 0, .fields = key_to_path},
    {"name", ONE, TEXT},
    {"optional", ONE, BOOL, PTR},
    {0},
};

static const struct sw_sim_field downward_api_projection[] = {
    {"items", LIST, STRUCT, 0, .fields = downward_api_volume_file},
    {0},
};

static const struct sw_sim_field secret_projection[] = {
    {"items", LIST, STRUCT, 0, .fields = key_to_path},
    {"name", ONE, TEXT},
    {"optional", ONE, BOOL, PTR},
    {0},
};

static const struct sw_sim_field service_account_token_projection[] = {
    {"audience", ONE, TEXT},
    {"expirationSeconds", ONE, INT, PTR},
    {"path", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field volume_projection[] = {
    {"configMap", ONE, STRUCT, PTR, .fields = config_map_projection},
    {"downwardAPI", ONE, STRUCT, PTR, .fields = downward_api_projection},
    {"secret", ONE, STRUCT, PTR, .fields = secret_projection},
    {"serviceAccountToken", ONE, STRUCT, PTR, .fields = service_account_token_projection},
    {0},
};

static const struct sw_sim_field projected_volume_source[] = {
    {"defaultMode", ONE, INT, PTR},
    {"sources", LIST, STRUCT, KEEP, .fields = volume_projection},
    {0},
};

static const struct sw_sim_field secret_volume_source[] = {
    {"defaultMode", ONE, INT, PTR},
    {"items", LIST, STRUCT, 0, .fields = key_to_path},
    {"optional", ONE, BOOL, PTR},
    {"secretName", ONE, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_volume[] = {
    {"awsElasticBlockStore", ONE, ANY, PTR},
    {"azureDisk", ONE, ANY, PTR},
    {"azureFile", ONE, ANY, PTR},
    {"cephfs", ONE, ANY, PTR},
    {"cinder", ONE, ANY, PTR},
    {"configMap", ONE, STRUCT, PTR, .fields = config_map_volume_source},
    {"csi", ONE, ANY, PTR},
    {"downwardAPI", ONE, STRUCT, PTR, .fields = downward_api_volume_source},
    {"emptyDir", ONE, STRUCT, PTR, .fields = empty_dir_volume_source},
    {"ephemeral", ONE, ANY, PTR},
    {"fc", ONE, ANY, PTR},
    {"flexVolume", ONE, ANY, PTR},
    {"flocker", ONE, ANY, PTR},
    {"gcePersistentDisk", ONE, ANY, PTR},
    {"gitRepo", ONE, STRUCT, PTR, .fields = git_repo_volume_source},
    {"glusterfs", ONE, ANY, PTR},
    {"hostPath", ONE, STRUCT, PTR, .fields = host_path_volume_source},
    {"iscsi", ONE, ANY, PTR},
    {"name", ONE, TEXT, KEEP},
    {"nfs", ONE, STRUCT, PTR, .fields = nfs_volume_source},
    {"persistentVolumeClaim", ONE, STRUCT, PTR, .fields = persistent_volume_claim_volume_source},
    {"photonPersistentDisk", ONE, ANY, PTR},
    {"portworxVolume", ONE, ANY, PTR},
    {"projected", ONE, STRUCT, PTR, .fields = projected_volume_source},
    {"quobyte", ONE, ANY, PTR},
    {"rbd", ONE, ANY, PTR},
    {"scaleIO", ONE, ANY, PTR},
    {"secret", ONE, STRUCT, PTR, .fields = secret_volume_source},
    {"storageos", ONE, ANY, PTR},
    {"vsphereVolume", ONE, ANY, PTR},
    {0},
};
