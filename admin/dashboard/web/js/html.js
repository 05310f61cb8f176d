/**
 * The one door to the vendored view library (Preact with htm, see vendor/). Everything shown passes through its text
 * nodes and attributes, which is what escapes it; nothing here or elsewhere sets HTML from text.
 */
export {
  h, html, render, createContext,
  useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState,
} from '../vendor/htm-preact-3.1.1.js';
