const API_KEYS = /wc_(live|test|chan)_[0-9A-Za-z]+/g

/**
 * Replaces every API key and channel token in a text, whole or cut short: one pasted in a wrong place must not
 * come back.
 */
export const redactApiKeys = (text: string): string =>
  text.includes('wc_') ? text.replaceAll(API_KEYS, 'wc_$1_[redacted]') : text
