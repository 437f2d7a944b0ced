import { readFileSync } from 'node:fs'

/** Reads the version of the product: beside the sources, or above them in a build. */
const readVersion = (): string => {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as {
        name?: string
        version?: string
      }
      if ((name === 'wcrm' || name === '@wcrm/server') && version !== undefined) return version
    } catch {
      /* Not there: the other one is. */
    }
  }
  return 'unknown'
}

/** The version of the product, such as `0.1.0`. */
export const version = readVersion()
