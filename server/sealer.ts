import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/**
 * Seals and opens small texts with a key derived from `WCRM_SECRET` for one purpose (AES-256-GCM,
 * HKDF-SHA256).
 */
export type Sealer = {
  /** Base64url; opens only with the same binding. */
  seal: (text: string, binding: string) => string
  /** The text, or undefined when it was not sealed by us with this binding. */
  open: (sealed: string, binding: string) => string | undefined
}

const IV = 12
const TAG = 16

export const createSealer = (secret: string, purpose: string): Sealer => {
  const key = Buffer.from(hkdfSync('sha256', secret, 'wcrm', purpose, 32))
  return {
    seal: (text, binding) => {
      const iv = randomBytes(IV)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(binding))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([iv, body, cipher.getAuthTag()]).toString('base64url')
    },
    open: (sealed, binding) => {
      const bytes = Buffer.from(sealed, 'base64url')
      if (bytes.length < IV + TAG || bytes.toString('base64url') !== sealed) return undefined
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV), {
          authTagLength: TAG,
        }).setAAD(Buffer.from(binding))
        decipher.setAuthTag(bytes.subarray(-TAG))
        return decipher.update(bytes.subarray(IV, -TAG), undefined, 'utf8') + decipher.final('utf8')
      } catch {
        return undefined
      }
    },
  }
}
