import { currentVersion } from '../../catalog/index.ts'
import { Problem } from './problem.ts'

/** Throws 400 for another version than the one there is. */
export const requireApiVersion = (requested: string | undefined): void => {
  if (requested === undefined || requested === currentVersion) return
  throw new Problem('invalid_input', `There is no API version "${requested.slice(0, 40)}".`, {
    reason: 'unknown_version',
    errors: [
      {
        header: 'Api-Version',
        code: 'unknown_version',
        detail: 'must be a listed version',
        allowed: [currentVersion],
        fix: `Send ${currentVersion}, or leave the header out.`,
      },
    ],
  })
}
