/** Something about the installation. A warning may be as somebody wants it; a problem is not. */
export type Finding = { status: 'warning' | 'problem'; about: string; detail: string; fix: string }

export const GIB = 1024 ** 3

export const warning = (about: string, detail: string, fix: string): Finding => ({
  status: 'warning',
  about,
  detail,
  fix,
})
export const problem = (about: string, detail: string, fix: string): Finding => ({
  ...warning(about, detail, fix),
  status: 'problem',
})

export const formatBytes = (bytes: number): string =>
  bytes >= GIB ? `${(bytes / GIB).toFixed(1)} GiB` : `${Math.round(bytes / 1024 ** 2)} MiB`

export const formatSeconds = (seconds: number): string =>
  seconds >= 7200 ? `${Math.round(seconds / 3600)} hours` : `${Math.round(seconds / 60)} minutes`
