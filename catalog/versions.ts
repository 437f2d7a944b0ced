/** The version of the API, which `Api-Version` names; keys are pinned to it. */
export const currentVersion = '2026-10-01'
